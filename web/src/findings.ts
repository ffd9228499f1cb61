// The findings of `h5mirror` in a file, as the web process sends them (docs/design/045-web.md,
// "Differences").

import type { Origin } from './model';
import { counted } from './words';

export interface Region {
  offset: number[];
  shape: number[]; // of a chunk; of a run its length
  elements: number; // that differ
}

export interface Change {
  change: string; // added, removed, moved, changed, unknown
  path: string;
  object: string;
  what: string; // of a changed one: attribute, shape, data, ...
  name: string; // of an attribute
  old_path: string; // of a moved one
  note: string;
  old: string | null;
  new: string | null;
  elements: number; // of data
  is_chunked: boolean;
  region_count: number;
  regions: Region[]; // the first ones
}

export interface Diff {
  old: string;
  new: string;
  changes: Change[];
  equal: boolean;
  all_compared: boolean;
  is_whole: boolean; // false: there are more changes
}

export interface FoundVersion {
  version: string;
  time: string;
  user: string;
  comment: string;
  tags: string[];
}

export interface ObjectEvent {
  event: string; // appeared, first_seen, changed, replaced, went, unknown
  version: FoundVersion | null;
  before: number;
  object: string;
  note: string;
  changes: Change[];
}

export interface ObjectHistory {
  events: ObjectEvent[]; // newest first
  versions_seen: number;
  is_complete: boolean;
}

export interface Blamed {
  name: string;
  value: string;
  version: FoundVersion | null; // null: not known
  or_earlier: boolean;
}

export interface Comparison {
  old_shape: number[];
  shape: number[];
  compared: number[]; // the shape that both have
  is_whole: boolean; // false: too large, so a block alone was compared, or nothing
  differing: number;
  grid: number[][] | null; // the part of the elements that differ in each cell, 0 to 1
  values: { index: number[]; old: string; new: string }[]; // the first ones
}

export interface Restored {
  action: string; // restored, replaced, would_restore, would_replace
  kind: string;
  old_kind: string; // of what is replaced; '': nothing
  path: string;
  into: string;
  objects: number;
  attributes: number;
  bytes: number;
  old_objects: number;
  old_bytes: number;
  from_version: number;
  version: number; // that was made
  lost_references: number;
  notes: string[];
}

// The visitor's rights to a file.
export interface Allowed {
  rights: string[];
  // The local file that this page does not write, so that an object is restored there; null: the page restores it.
  original: Origin | null;
}

export type Wanted =
  | { what: 'tag' | 'untag'; file: string; version: string; tag: string }
  | { what: 'rollback'; file: string; version: string; comment: string }
  | { what: 'restore'; file: string; version: string; path: string; replace: boolean };

export interface Preview {
  expected: string; // what the change is to find as the preview has
  says: string;
  diff?: Diff;
  restore?: Restored;
}

export interface Done {
  says: string;
  notes?: string[];
  restore?: Restored;
}

// Changes of objects, below the groups that lead to them.
export interface Branch {
  name: string; // of the last part of the path
  path: string;
  changes: Change[];
  branches: Branch[];
}

export function treeOf(changes: readonly Change[]): Branch {
  const root: Branch = { name: '/', path: '/', changes: [], branches: [] };
  const known = new Map<string, Branch>([['/', root]]);
  for (const change of changes) {
    let above = root;
    let path = '';
    for (const name of change.path.split('/').filter((part) => part !== '')) {
      path += `/${name}`;
      let here = known.get(path);
      if (here === undefined) {
        here = { name, path, changes: [], branches: [] };
        known.set(path, here);
        above.branches.push(here);
      }
      above = here;
    }
    above.changes.push(change);
  }
  return root;
}

const WORDS: Record<string, string> = {
  added: 'new',
  removed: 'gone',
  moved: 'moved',
  changed: 'changed',
  unknown: 'not comparable',
  appeared: 'appeared',
  first_seen: 'was there already',
  replaced: 'was replaced by another object',
  went: 'went',
};

export function wordOf(kind: string): string {
  return WORDS[kind] ?? kind;
}

export function isOfData(change: Change): boolean {
  return change.change === 'changed' && change.what === 'data';
}

// One change in words, with the values of before and after.
export function sentenceOf(change: Change): string {
  const { change: kind, object, what, name, note } = change;
  const more = note === '' ? '' : ` (${note})`;
  if (kind === 'moved') return `${object} moved from ${change.old_path}${more}`;
  if (kind === 'added') return `${change.new ?? object} is new${more}`;
  if (kind === 'removed') return `${change.old ?? object} is gone${more}`;
  if (kind === 'unknown') return `${name === '' ? what : `${what} ${name}`} could not be compared${more}`;
  if (isOfData(change)) {
    const regions = counted(change.region_count, change.is_chunked ? 'chunk' : 'run');
    return `${counted(change.elements, 'element')} ${change.elements === 1 ? 'differs' : 'differ'}, in ${regions}${more}`;
  }
  return `${name === '' ? what : `${what} ${name}`}: ${change.old ?? 'none'} → ${change.new ?? 'none'}${more}`;
}

const CELLS = 64;

// The part of each cell of a dataset that changed regions cover: 0 or above, at most 1. [] where the regions do not say where they
// are. As the web process does for elements: rows are the first dimension, columns the last, a single dimension is one row.
export function gridOf(change: Change, shape: readonly number[]): number[][] {
  if (shape.length === 0 || shape.some((length) => length === 0)) return [];
  const isLine = shape.length === 1;
  const height = isLine ? 1 : (shape[0] ?? 1);
  const width = shape[shape.length - 1] ?? 1;
  const rows = Math.min(height, CELLS);
  const columns = Math.min(width, isLine ? 2 * CELLS : CELLS);
  const grid = Array.from({ length: rows }, () => new Array<number>(columns).fill(0));
  let drawn = 0;
  for (const { offset, shape: extent } of change.regions) {
    if (offset.length !== shape.length) continue;
    const [top, left] = [isLine ? 0 : (offset[0] ?? 0), offset[offset.length - 1] ?? 0];
    const isChunk = extent.length === shape.length;
    // A run goes on in the next row; it is drawn as far as its first row has it.
    const down = isLine || !isChunk ? 1 : (extent[0] ?? 1);
    const right = Math.min(width - left, extent[extent.length - 1] ?? 1);
    cover(grid, { top, left, bottom: Math.min(height, top + down), right: left + right }, height, width);
    drawn += 1;
  }
  return drawn === 0 ? [] : grid;
}

interface Box {
  top: number;
  left: number;
  bottom: number;
  right: number;
}

function cover(grid: number[][], box: Box, height: number, width: number): void {
  const columns = grid[0]?.length ?? 1;
  const up = height / grid.length;
  const along = width / columns;
  for (let row = Math.floor(box.top / up); row < grid.length && row * up < box.bottom; row += 1) {
    const cells = grid[row];
    if (cells === undefined) return;
    const rowPart = part(box.top, box.bottom, row * up, (row + 1) * up);
    for (let column = Math.floor(box.left / along); column < columns && column * along < box.right; column += 1) {
      const more = rowPart * part(box.left, box.right, column * along, (column + 1) * along);
      cells[column] = Math.min(1, (cells[column] ?? 0) + more);
    }
  }
}

// How much of the cell [from, to) lies in [begin, end).
function part(begin: number, end: number, from: number, to: number): number {
  return Math.max(0, Math.min(end, to) - Math.max(begin, from)) / (to - from);
}

// Of a large dataset: the first changed region, as a block that can be compared. undefined: nobody knows where it is.
export function firstBlock(change: Change, shape: readonly number[]): { offset: string; extent: string } | undefined {
  const region = change.regions.find((each) => each.offset.length === shape.length);
  if (region === undefined) return undefined;
  const isChunk = region.shape.length === shape.length;
  const extent = isChunk ? region.shape : shape.map((_, axis) => (axis === shape.length - 1 ? (region.shape[0] ?? 1) : 1));
  return { offset: region.offset.join(','), extent: extent.join(',') };
}
