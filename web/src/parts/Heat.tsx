import type { Comparison } from '../findings';

interface GridProps {
  grid: readonly (readonly number[])[];
  label: string;
}

// Where a dataset differs: darker where more of a cell does. Rows are the first dimension, columns the last.
export function Heat({ grid, label }: GridProps) {
  const columns = grid[0]?.length ?? 0;
  if (columns === 0) return null;
  return (
    <svg
      className={grid.length === 1 ? 'heat line' : 'heat'}
      role="img"
      aria-label={label}
      viewBox={`0 0 ${columns} ${grid.length}`}
      preserveAspectRatio="none"
    >
      {grid.flatMap((cells, row) =>
        cells.map((part, column) =>
          part > 0 ? (
            <rect
              key={`${row},${column}`}
              className="cell"
              x={column}
              y={row}
              width={1}
              height={1}
              fillOpacity={0.25 + 0.75 * part}
            />
          ) : null,
        ),
      )}
    </svg>
  );
}

// The first elements that differ.
export function Values({ values, old, now }: { values: Comparison['values']; old: string; now: string }) {
  if (values.length === 0) return null;
  return (
    <table className="values">
      <caption>The first elements that differ</caption>
      <thead>
        <tr>
          <th scope="col">Element</th>
          <th scope="col">Version {old}</th>
          <th scope="col">Version {now}</th>
        </tr>
      </thead>
      <tbody>
        {values.map((each) => (
          <tr key={each.index.join(',')}>
            <th scope="row">[{each.index.join(', ')}]</th>
            <td>{each.old}</td>
            <td>{each.new}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
