import { useDeferredValue, useMemo, useState } from 'react';

import { files } from '../api';
import { type FileSummary, type MirrorState, MIRROR_STATES, stateOf } from '../model';
import { Failure } from '../parts/Failure';
import { Link } from '../parts/Link';
import { Sparkline } from '../parts/Sparkline';
import { StateBadge } from '../parts/StateBadge';
import { WriterName } from '../parts/WriterName';
import { usePolled } from '../polling';
import { advice, bytes, counted, moment, stateWord } from '../words';

const EVERY_MS = 5000;
const ROWS_AT_ONCE = 200;

// The files that hold all words of a search, in any order; those that need somebody come first.
export function found(all: readonly FileSummary[], search: string, state: MirrorState | ''): FileSummary[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  return all
    .filter((file) => words.every((word) => file.name.toLowerCase().includes(word)))
    .filter((file) => state === '' || stateOf(file.mirror) === state)
    .sort((a, b) => urgency(a) - urgency(b) || (a.name < b.name ? -1 : 1));
}

function urgency(file: FileSummary): number {
  const state = stateOf(file.mirror);
  return state === 'DIVERGED' ? 0 : state === 'DEGRADED' ? 1 : 2;
}

export function FilesPage() {
  const { value, failure, now } = usePolled(files, EVERY_MS);
  const [search, setSearch] = useState('');
  const [state, setState] = useState<MirrorState | ''>('');
  const [rows, setRows] = useState(ROWS_AT_ONCE);
  const wanted = useDeferredValue(search);
  const shown = useMemo(() => found(value?.files ?? [], wanted, state), [value, wanted, state]);
  const troubled = shown.filter((file) => advice(file.name, file.mirror) !== '');

  return (
    <>
      <h1>Files</h1>
      <form role="search" className="search" onSubmit={(event) => event.preventDefault()}>
        <label htmlFor="search">Name</label>
        <input id="search" type="search" value={search} onChange={(event) => setSearch(event.target.value)} />
        <label htmlFor="state">State</label>
        <select
          id="state"
          value={state}
          onChange={(event) => setState(MIRROR_STATES.find((each) => each === event.target.value) ?? '')}
        >
          <option value="">all</option>
          {MIRROR_STATES.map((each) => (
            <option key={each} value={each}>
              {stateWord(each)}
            </option>
          ))}
        </select>
      </form>
      {failure !== '' && <Failure message={failure} />}
      {troubled.length > 0 && <Troubles files={troubled} />}
      {(value !== undefined || failure === '') && (
        <p role="status">
          {value === undefined ? 'Loading…' : `${shown.length} of ${counted(value.files.length, 'file')}`}
          {value?.isWhole === false && '; the server has more of them than this page lists'}
        </p>
      )}
      {shown.length > 0 && <Table files={shown.slice(0, rows)} now={now} />}
      {shown.length > rows && (
        <button type="button" onClick={() => setRows(rows + ROWS_AT_ONCE)}>
          Show more
        </button>
      )}
    </>
  );
}

// Without a look at the file; an older server makes none.
function NotKnown() {
  return <span className="lag">not known</span>;
}

function Troubles({ files: troubled }: { files: FileSummary[] }) {
  return (
    <section className="troubles" aria-label="What needs you">
      <h2>What needs you</h2>
      <ul>
        {troubled.slice(0, 5).map((file) => (
          <li key={file.name}>
            <strong>{file.name}</strong> {advice(file.name, file.mirror)} {file.mirror?.detail}
          </li>
        ))}
      </ul>
      {troubled.length > 5 && <p>And {troubled.length - 5} more.</p>}
    </section>
  );
}

function Table({ files: rows, now }: { files: FileSummary[]; now: number }) {
  return (
    <table className="files">
      <thead>
        <tr>
          <th scope="col">Name</th>
          <th scope="col">State</th>
          <th scope="col">Writer</th>
          <th scope="col">Bytes a second</th>
          <th scope="col">Size</th>
          <th scope="col">History</th>
          <th scope="col">Changed</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((file) => (
          <tr key={file.name}>
            <th scope="row">
              <Link to={{ page: 'file', name: file.name, version: '', path: '/' }}>{file.name}</Link>
            </th>
            <td>
              <StateBadge mirror={file.mirror} now={now} />
            </td>
            <td data-label="Writer">
              <WriterName last={file.last_writer} />
            </td>
            <td data-label="Bytes a second">
              {file.history_bytes === undefined ? <NotKnown /> : <Sparkline writes={file.recent_writes} />}
            </td>
            <td data-label="Size">{bytes(file.size_bytes)}</td>
            <td data-label="History">
              {file.history_bytes === undefined ? <NotKnown /> : bytes(file.history_bytes)}
            </td>
            <td data-label="Changed">{moment(file.modify_time)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
