import type { LastWriter } from '../model';

// The user, machine and program of a writer, as far as the server knows them.
export function WriterName({ last }: { last: LastWriter | undefined }) {
  const claimed = last?.writer?.claimed_user ?? '';
  const user = last === undefined || last.verified_user === '' ? claimed : last.verified_user;
  const host = last?.writer?.host ?? '';
  const place = host === '' ? user : `${user === '' ? 'unknown' : user}@${host}`;
  const name = [place, last?.writer?.program ?? ''].filter(Boolean).join(' ');
  if (last === undefined || name === '') return <span className="lag">not known</span>;
  const notes = [last.is_writing ? 'writing now' : '', last.verified_user === '' ? 'not verified' : ''].filter(Boolean);
  return (
    <>
      {name}
      {notes.length > 0 && <span className="lag"> ({notes.join(', ')})</span>}
    </>
  );
}
