import type { RecentWrites } from '../model';
import { duration, rate } from '../words';

const HEIGHT = 20;

// One point for each interval, the largest at the top.
export function pathOf(values: readonly number[]): string {
  const most = Math.max(...values, 1);
  const points = values.map((value, i) => `${i},${(HEIGHT - (value / most) * HEIGHT).toFixed(1)}`);
  return `M${points.join('L')}`;
}

// How fast programs have sent bytes of a file in the last minutes; the text says it to those who see no picture.
export function Sparkline({ writes }: { writes: RecentWrites | undefined }) {
  const values = writes?.received_bytes.map(Number) ?? [];
  const seconds = writes?.interval_seconds ?? 0;
  if (values.length < 2 || seconds <= 0) return <span className="lag">none lately</span>;
  // The last interval is not over yet.
  const whole = values.at(-2) ?? 0;
  const now = rate(whole > 0 ? whole : (values.at(-1) ?? 0), seconds);
  const most = rate(Math.max(...values), seconds);
  const label = `Bytes a second in the last ${duration(values.length * seconds * 1000)}: now ${now}, at most ${most}`;
  return (
    <>
      <svg
        className="spark"
        role="img"
        aria-label={label}
        viewBox={`0 0 ${values.length - 1} ${HEIGHT}`}
        preserveAspectRatio="none"
      >
        <path d={pathOf(values)} />
      </svg>
      <span className="lag">{now}</span>
    </>
  );
}
