import { type Branch, type Diff, isOfData, sentenceOf, treeOf, wordOf } from '../findings';
import { DataChange } from './DataChange';

interface Props {
  name: string;
  diff: Diff;
}

// Which objects differ, as the groups of the file have them.
export function DiffTree({ name, diff }: Props) {
  if (diff.changes.length === 0) {
    return <p role="status">{diff.equal ? 'The two are equal.' : 'No difference was found before the time was up.'}</p>;
  }
  const root = treeOf(diff.changes);
  return (
    <>
      <p role="status">
        {diff.is_whole ? '' : 'The first '}
        {diff.changes.length.toLocaleString()} {diff.changes.length === 1 ? 'difference' : 'differences'}
        {diff.is_whole ? '.' : '; `h5mirror diff` lists all.'}
        {diff.is_whole && !diff.all_compared && ' Not all could be compared.'}
      </p>
      <ul className="tree">
        {root.changes.length > 0 && (
          <li>
            <Changes name={name} diff={diff} branch={root} />
          </li>
        )}
        <Branches name={name} diff={diff} branches={root.branches} />
      </ul>
    </>
  );
}

function Branches({ name, diff, branches }: Props & { branches: readonly Branch[] }) {
  return branches.map((each) => (
    <li key={each.path}>
      <Changes name={name} diff={diff} branch={each} />
      {each.branches.length > 0 && (
        <details open>
          <summary>in {each.name}</summary>
          <ul className="tree">
            <Branches name={name} diff={diff} branches={each.branches} />
          </ul>
        </details>
      )}
    </li>
  ));
}

function Changes({ name, diff, branch }: Props & { branch: Branch }) {
  if (branch.changes.length === 0) return null;
  return (
    <>
      <strong className="name">{branch.name}</strong>
      <ul>
        {branch.changes.map((change, number) => (
          <li key={number} className={`change-${change.change}`}>
            <span className="kind">{wordOf(change.change)}</span> {sentenceOf(change)}{' '}
            {isOfData(change) && <DataChange name={name} old={diff.old} now={diff.new} change={change} />}
          </li>
        ))}
      </ul>
    </>
  );
}
