import { useCallback, useState } from 'react';

import { compare } from '../api';
import { useAsked } from '../asked';
import { type Change, type Comparison, firstBlock, gridOf } from '../findings';
import { counted } from '../words';
import { Boundary } from './Boundary';
import { Failure } from './Failure';
import { Heat, Values } from './Heat';

interface Props {
  name: string;
  old: string;
  now: string;
  change: Change;
}

// A dataset is compared only when somebody wants to see it: it may be large.
export function DataChange(props: Props) {
  const [isShown, setShown] = useState(false);
  return (
    <>
      <button type="button" aria-expanded={isShown} onClick={() => setShown(!isShown)}>
        {isShown ? 'Hide where' : 'Show where'}
        <span className="unseen"> {props.change.path} differs</span>
      </button>
      {isShown && (
        <Boundary>
          <Where {...props} />
        </Boundary>
      )}
    </>
  );
}

interface Found {
  whole: Comparison;
  block: Comparison | undefined; // of a dataset that is too large
}

function Where({ name, old, now, change }: Props) {
  const ask = useCallback(
    async (signal: AbortSignal): Promise<Found> => {
      const whole = await compare(name, change.path, { old, now }, {}, signal);
      const first = whole.is_whole ? undefined : firstBlock(change, whole.shape);
      return { whole, block: first && (await compare(name, change.path, { old, now }, { ...first }, signal)) };
    },
    [name, old, now, change],
  );
  const { value, failure, isAsking } = useAsked(ask);
  if (isAsking) return <p role="status">Comparing {change.path}…</p>;
  if (failure !== '') return <Failure message={failure} />;
  if (value === undefined) return null;
  const { whole, block } = value;
  const grid = whole.is_whole ? (whole.grid ?? []) : gridOf(change, whole.shape);
  const shape = whole.shape.join(' × ');
  return (
    <div className="where">
      <p>
        {whole.is_whole
          ? `${counted(whole.differing, 'element')} ${whole.differing === 1 ? 'differs' : 'differ'}, of ${shape === '' ? 'one' : shape}.`
          : `The dataset (${shape}) is too large to be compared here. These are the first ${change.regions.length.toLocaleString()} ` +
            `of ${change.region_count.toLocaleString()} changed ${change.is_chunked ? 'chunks' : 'runs'}` +
            (block === undefined ? '.' : ', and elements of the first one.')}
        {whole.old_shape.join() !== whole.shape.join() &&
          ` The shape was ${whole.old_shape.join(' × ')}; what both have is compared.`}
      </p>
      <Heat grid={grid} label={`Where ${change.path} differs`} />
      <Values values={(block ?? whole).values} old={old} now={now} />
    </div>
  );
}
