import { type MirrorStatus, stateOf } from '../model';
import { lag, stateWord } from '../words';

const MARKS = { CONNECTED: '●', DEGRADED: '▲', RESYNCING: '◐', IN_SYNC: '✓', DIVERGED: '✕' } as const;

// In words and by a mark: colour alone would not reach everybody.
export function StateBadge({ mirror, now, word }: { mirror: MirrorStatus | undefined; now: number; word?: string }) {
  const state = stateOf(mirror);
  const lacks = lag(mirror, now);
  return (
    <span className={`state state-${state ?? 'NONE'}`}>
      <span aria-hidden="true">{state === undefined ? '○' : MARKS[state]} </span>
      {word ?? stateWord(state)}
      {lacks !== '' && <span className="lag">, {lacks}</span>}
    </span>
  );
}
