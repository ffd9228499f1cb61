import { expect, test } from 'vitest';

import { firstBlock, gridOf, sentenceOf, treeOf } from './findings';
import { change } from './testing/samples';

test('changes lie below the groups that lead to them', () => {
  const root = treeOf([change('/a/b', { what: 'shape' }), change('/a', { what: 'attribute' }), change('/a/b', { what: 'data' })]);
  expect(root.branches.map((each) => each.path)).toEqual(['/a']);
  expect(root.branches[0]?.changes.map((each) => each.what)).toEqual(['attribute']);
  expect(root.branches[0]?.branches[0]?.changes.map((each) => each.what)).toEqual(['shape', 'data']);
});

test('a change of the root itself is its own', () => {
  expect(treeOf([change('/', { what: 'attribute' })]).changes).toHaveLength(1);
});

test.each([
  [change('/a', { what: 'attribute', name: 'unit', old: '"K"', new: '"C"' }), 'attribute unit: "K" → "C"'],
  [change('/a', { what: 'attribute', name: 'unit', new: '"C"' }), 'attribute unit: none → "C"'],
  [change('/a', { change: 'added', new: 'dataset of 3' }), 'dataset of 3 is new'],
  [change('/a', { change: 'removed', old: 'dataset of 3' }), 'dataset of 3 is gone'],
  [change('/a', { change: 'moved', old_path: '/b' }), 'dataset moved from /b'],
  [change('/a', { what: 'data', elements: 1200, region_count: 2, is_chunked: true }), '1,200 elements differ, in 2 chunks'],
  [change('/a', { what: 'data', elements: 1, region_count: 1 }), '1 element differs, in 1 run'],
  [change('/a', { change: 'unknown', what: 'data', note: 'no filter' }), 'data could not be compared (no filter)'],
])('%# is told in words', (found, words) => {
  expect(sentenceOf(found)).toBe(words);
});

test('chunks cover their cells', () => {
  const regions = [{ offset: [0, 2], shape: [2, 2], elements: 1 }];
  expect(gridOf(change('/a', { regions }), [4, 4])).toEqual([
    [0, 0, 1, 1],
    [0, 0, 1, 1],
    [0, 0, 0, 0],
    [0, 0, 0, 0],
  ]);
});

test('a cell of many elements is covered in part', () => {
  const grid = gridOf(change('/a', { regions: [{ offset: [0], shape: [5], elements: 5 }] }), [1280]);
  expect(grid[0]).toHaveLength(128);
  expect(grid[0]?.slice(0, 2)).toEqual([0.5, 0]);
});

test('regions of other dimensions, or past the end, draw nothing outside', () => {
  const lost = change('/a', { regions: [{ offset: [], shape: [5], elements: 5 }] });
  expect(gridOf(lost, [10, 10])).toEqual([]);
  expect(gridOf(change('/a', { regions: [{ offset: [9, 9], shape: [5, 5], elements: 5 }] }), [10, 10]).flat()).toHaveLength(100);
});

test('the first block of a run is a part of one row', () => {
  const found = change('/a', { regions: [{ offset: [3, 7], shape: [9], elements: 9 }] });
  expect(firstBlock(found, [10, 20])).toEqual({ offset: '3,7', extent: '1,9' });
  expect(firstBlock(change('/a'), [10])).toBeUndefined();
});
