import { useCallback, useEffect, useState } from 'react';

import { blame, history } from '../api';
import { useAsked } from '../asked';
import { restoreCommand } from '../commands';
import { type Blamed, type FoundVersion, type ObjectEvent, sentenceOf, wordOf } from '../findings';
import type { Looked } from '../looked';
import type { Origin } from '../model';
import { moment } from '../words';
import { ChangeFlow } from './ChangeFlow';
import { Failure } from './Failure';
import { MissingRight } from './MissingRight';

interface Props {
  name: string;
  version: string; // that is shown; '': the live file
  looked: Looked; // the object that is selected in the viewer
  rights: readonly string[] | undefined; // to the file; undefined: not known yet
  original: Origin | null; // the local file, where that has to be restored
  onChoose: (version: string) => void;
  onChanged: (says: string) => void;
}

// One object over all versions, and back from the one that is shown.
export function ObjectPanel({ name, version, looked, rights, original, onChoose, onChanged }: Props) {
  const [typed, setTyped] = useState<string>(); // undefined: as the viewer has it
  const [asked, setAsked] = useState('');
  const [isReplaced, setReplaced] = useState(false);
  const [shown, setShown] = useState(looked.get);
  useEffect(() => {
    let former = looked.get();
    setShown(former);
    return looked.subscribe(() => {
      const now = looked.get();
      setShown(now);
      if (now === '' || now === former) return;
      if (former !== '') setTyped(undefined); // Somebody chose another object after a path was typed.
      former = now;
    });
  }, [looked]);
  const path = typed ?? shown;
  const wanted = { what: 'restore', file: name, version, path, replace: isReplaced } as const;
  return (
    <section aria-label="One object" className="object">
      <h2>One object</h2>
      <form
        className="search"
        onSubmit={(event) => {
          event.preventDefault();
          setAsked(path);
        }}
      >
        <label htmlFor="object">Path</label>
        <input id="object" value={path} onChange={(event) => setTyped(event.target.value)} spellCheck={false} />
        <button type="submit" disabled={!path.startsWith('/')}>
          Show its history
        </button>
      </form>
      {version !== '' && <MissingRight rights={rights} right="write" to="restore an object" />}
      {rights?.includes('write') === true && version !== '' && path !== '/' && path.startsWith('/') && (
        <div className="search">
          <input
            type="checkbox"
            id="replace"
            checked={isReplaced}
            onChange={(event) => setReplaced(event.target.checked)}
          />
          <label htmlFor="replace">Replace what is there now</label>
          {original === null ? (
            <ChangeFlow
              key={`${version} ${path} ${isReplaced}`}
              label={`Restore ${path} of version ${version}`}
              wanted={wanted}
              onDone={onChanged}
            />
          ) : (
            <p className="elsewhere">
              The original is {original.host}:{original.path}, which this page does not write. To restore {path} of version{' '}
              {version}, run there: <code>{restoreCommand(wanted, original.path)}</code>
            </p>
          )}
        </div>
      )}
      {asked !== '' && <Found key={asked} name={name} path={asked} onChoose={onChoose} />}
    </section>
  );
}

function Found({ name, path, onChoose }: { name: string; path: string; onChoose: (version: string) => void }) {
  const askEvents = useCallback((signal: AbortSignal) => history(name, path, signal), [name, path]);
  const askBlame = useCallback((signal: AbortSignal) => blame(name, path, signal), [name, path]);
  const events = useAsked(askEvents);
  const attributes = useAsked(askBlame);
  return (
    <>
      <h3 className="name">{path}</h3>
      {events.isAsking && <p role="status">Looking for versions that changed {path}…</p>}
      {events.failure !== '' && <Failure message={events.failure} />}
      {events.value !== undefined && (
        <>
          <ol className="events">
            {events.value.events.map((each, number) => (
              <Event key={number} event={each} onChoose={onChoose} />
            ))}
          </ol>
          {!events.value.is_complete && <p>Older versions, or some between, may have more.</p>}
        </>
      )}
      {attributes.value !== undefined && attributes.value.length > 0 && <Attributes attributes={attributes.value} />}
      {events.failure === '' && attributes.failure !== '' && <p>Its attributes: {attributes.failure}</p>}
    </>
  );
}

function Event({ event, onChoose }: { event: ObjectEvent; onChoose: (version: string) => void }) {
  return (
    <li>
      <VersionButton version={event.version} onChoose={onChoose} /> {wordOf(event.event)}
      {event.object !== '' && `: ${event.object}`}
      {event.note !== '' && ` (${event.note})`}
      {event.changes.length > 0 && (
        <ul>
          {event.changes.map((each, number) => (
            <li key={number}>{sentenceOf(each)}</li>
          ))}
        </ul>
      )}
    </li>
  );
}

function Attributes({ attributes }: { attributes: readonly Blamed[] }) {
  return (
    <table className="values">
      <caption>Attributes, each with the version that gave it its value</caption>
      <thead>
        <tr>
          <th scope="col">Attribute</th>
          <th scope="col">Value</th>
          <th scope="col">Version</th>
          <th scope="col">Who</th>
        </tr>
      </thead>
      <tbody>
        {attributes.map((each) => (
          <tr key={each.name}>
            <th scope="row">{each.name}</th>
            <td>{each.value}</td>
            <td>
              {each.version === null ? 'not known' : each.version.version}
              {each.or_earlier && ' or earlier'}
            </td>
            <td>{each.version?.user}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface VersionButtonProps {
  version: FoundVersion | null;
  onChoose: (version: string) => void;
}

function VersionButton({ version, onChoose }: VersionButtonProps) {
  if (version === null) return <>an unknown version</>;
  return (
    <>
      <button type="button" onClick={() => onChoose(version.version)}>
        Version {version.version}
      </button>{' '}
      {moment(version.time)}, {version.user}
    </>
  );
}
