import { useState } from 'react';

import { bytesUrl } from '../api';
import type { Version } from '../model';
import { ChangeFlow } from './ChangeFlow';
import { MissingRight } from './MissingRight';

interface Props {
  name: string;
  version: string;
  about: Version | undefined; // undefined: it is not among those that were loaded
  rights: readonly string[] | undefined; // to the file; undefined: not known yet
  isNewest: boolean;
  onChanged: (says: string) => void;
}

const TAG = /^(?![0-9]+$)[A-Za-z0-9._-]{1,100}$/;

// The actions on the shown version. Actions without the right are left out, with the reason.
export function VersionPanel({ name, version, about, rights, isNewest, onChanged }: Props) {
  const [tag, setTag] = useState('');
  const [comment, setComment] = useState('');
  return (
    <section aria-label={`Version ${version}`} className="version">
      <p>
        <a className="button" href={bytesUrl(name, version)} download>
          Download version {version}
        </a>
      </p>
      <MissingRight rights={rights} right="write" to="change tags" />
      {rights?.includes('write') === true && (
        <>
          <div className="search">
            <label htmlFor="tag">Tag</label>
            <input id="tag" value={tag} onChange={(event) => setTag(event.target.value.trim())} spellCheck={false} />
            <ChangeFlow
              key={`${version} ${tag}`}
              label={`Tag version ${version}`}
              wanted={{ what: 'tag', file: name, version, tag }}
              isDisabled={!TAG.test(tag)}
              onDone={(says) => {
                setTag('');
                onChanged(says);
              }}
            />
          </div>
          {about?.tags.map((each) => (
            <ChangeFlow
              key={`${version} ${each}`}
              label={`Remove the tag ${each}`}
              wanted={{ what: 'untag', file: name, version, tag: each }}
              onDone={onChanged}
            />
          ))}
        </>
      )}
      {!isNewest && <MissingRight rights={rights} right="restore" to="roll back to this version" />}
      {rights?.includes('restore') === true && !isNewest && (
        <div className="search">
          <label htmlFor="comment">Comment</label>
          <input id="comment" value={comment} maxLength={1000} onChange={(event) => setComment(event.target.value)} />
          <ChangeFlow
            key={`${version} ${comment}`}
            label={`Roll back to version ${version}`}
            wanted={{ what: 'rollback', file: name, version, comment }}
            onDone={(says) => {
              setComment('');
              onChanged(says);
            }}
          />
        </div>
      )}
    </section>
  );
}
