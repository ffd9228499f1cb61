import { useCallback, useState } from 'react';

import { diff } from '../api';
import { useAsked } from '../asked';
import type { Diff } from '../findings';
import type { Version } from '../model';
import { moment } from '../words';
import { DiffTree } from './DiffTree';
import { Failure } from './Failure';

interface Props {
  name: string;
  versions: readonly Version[]; // newest first
  chosen: string; // '': the live file, and so its newest version
}

// The differences between the shown version and another one.
export function Differences({ name, versions, chosen }: Props) {
  const [other, setOther] = useState('');
  const now = chosen === '' ? (versions[0]?.version ?? '') : chosen;
  const isAsked = other !== '' && now !== '' && other !== now;
  const [old = '', later = ''] = [other, now].sort((a, b) => Number(a) - Number(b));
  const ask = useCallback((signal: AbortSignal): Promise<Diff> => diff(name, old, later, signal), [name, old, later]);
  const { value, failure, isAsking } = useAsked(isAsked ? ask : undefined);
  if (versions.length < 2) return null;
  return (
    <section aria-label="Differences" className="differences">
      <h2>Differences</h2>
      <p className="search">
        <label htmlFor="other">Compare version {now} with</label>
        <select id="other" value={other} onChange={(event) => setOther(event.target.value)}>
          <option value="">no other</option>
          {versions
            .filter((each) => each.version !== now)
            .map((each) => (
              <option key={each.version} value={each.version}>
                {each.version}, {moment(each.server_time)}
                {each.tags.length > 0 && `, ${each.tags.join(', ')}`}
                {each.comment !== '' && `, ${each.comment.slice(0, 60)}`}
              </option>
            ))}
        </select>
      </p>
      {isAsking && <p role="status">Comparing versions {old} and {later}…</p>}
      {failure !== '' && <Failure message={failure} />}
      {value !== undefined && (
        <>
          <h3>
            From version {old} to version {later}
          </h3>
          <DiffTree name={name} diff={value} />
        </>
      )}
    </section>
  );
}
