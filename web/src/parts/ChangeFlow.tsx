import { useEffect, useRef, useState } from 'react';

import { change, preview } from '../api';
import { failureOf } from '../asked';
import { restoreCommand } from '../commands';
import type { Preview, Restored, Wanted } from '../findings';
import { bytes, counted } from '../words';
import { DiffTree } from './DiffTree';
import { Failure } from './Failure';

interface Props {
  label: string; // of the button, and of what it does
  wanted: Wanted;
  isDisabled?: boolean;
  onDone: (says: string) => void;
}

type Step = 'idle' | 'asking' | 'shown' | 'changing';

// A change in two steps: what would change, then the question.
export function ChangeFlow({ label, wanted, isDisabled = false, onDone }: Props) {
  const [step, setStep] = useState<Step>('idle');
  const [shown, setShown] = useState<Preview>();
  const [failure, setFailure] = useState('');
  const group = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);

  useEffect(() => {
    if (step === 'shown') group.current?.focus();
  }, [step]);

  function leave(message = '') {
    setStep('idle');
    setShown(undefined);
    setFailure(message);
  }

  async function look() {
    setStep('asking');
    setFailure('');
    try {
      setShown(await preview(wanted));
      setStep('shown');
    } catch (error) {
      leave(failureOf(error));
    }
  }

  async function doIt(expected: string) {
    setStep('changing');
    try {
      const done = await change(wanted, expected);
      leave();
      onDone([done.says, ...(done.notes ?? []), ...(done.restore?.notes ?? [])].join(' '));
    } catch (error) {
      leave(failureOf(error));
    }
  }

  return (
    <div className="flow">
      <button ref={button} type="button" disabled={isDisabled || step !== 'idle'} onClick={() => void look()}>
        {label}…
      </button>
      {step === 'asking' && <p role="status">Looking what would change…</p>}
      {failure !== '' && <Failure message={failure} />}
      {failure !== '' && wanted.what === 'restore' && (
        <p>
          On the writer&rsquo;s machine the same is <code>{restoreCommand(wanted)}</code>
        </p>
      )}
      {shown !== undefined && (
        <div ref={group} className="preview" role="group" aria-label={`${label}: what would change`} tabIndex={-1}>
          <p>{shown.says}</p>
          {shown.restore && <RestoreFacts restore={shown.restore} />}
          {shown.diff && <DiffTree name={wanted.file} diff={shown.diff} />}
          <button type="button" disabled={step === 'changing'} onClick={() => void doIt(shown.expected)}>
            {label} now
          </button>
          <button
            type="button"
            disabled={step === 'changing'}
            onClick={() => {
              leave();
              button.current?.focus();
            }}
          >
            Cancel
          </button>
          {step === 'changing' && <p role="status">Working…</p>}
        </div>
      )}
    </div>
  );
}

function RestoreFacts({ restore }: { restore: Restored }) {
  return (
    <ul>
      <li>
        Comes: {restore.kind} {restore.path}
        {restore.objects > 0 && `, ${counted(restore.objects, 'object')}, ${bytes(restore.bytes)}`}
      </li>
      {restore.old_kind !== '' && (
        <li>
          Goes: {restore.old_kind}
          {restore.old_objects > 0 && `, ${counted(restore.old_objects, 'object')}, ${bytes(restore.old_bytes)}`}
        </li>
      )}
      {restore.notes.map((each) => (
        <li key={each}>{each}</li>
      ))}
    </ul>
  );
}
