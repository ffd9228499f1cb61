import { expect, test } from 'vitest';

import { version } from './testing/samples';
import { bars, moved, timeOf, whole, within, zoomed } from './timeline';

const VERSIONS = Array.from({ length: 100 }, (_, i) => version(100 - i, { changed_bytes: String((100 - i) * 1000) }));

test('the whole has all versions inside, and no version is a span too', () => {
  const span = whole(VERSIONS);
  expect(within(VERSIONS, span)).toHaveLength(100);
  expect(span.from).toBeLessThan(timeOf(version(1)));
  expect(whole([]).to).toBeGreaterThan(whole([]).from);
});

test('one version is a span with a length', () => {
  const span = whole([version(1)]);
  expect(span.to).toBeGreaterThan(span.from);
  expect(bars([version(1)], span, 10)).toHaveLength(1);
});

test('a zoom keeps its middle, and never leaves the whole', () => {
  const all = whole(VERSIONS);
  const middle = timeOf(version(50));
  const near = zoomed(all, 0.1, middle, all);
  expect((near.from + near.to) / 2).toBeCloseTo(middle, -2);
  expect(within(VERSIONS, near).length).toBeLessThan(20);
  expect(zoomed(near, 1000, middle, all)).toEqual(all);
  expect(zoomed(all, 0.1, all.to, all).to).toBeCloseTo(all.to, 0);
  expect(moved(near, -1000, all).from).toBe(all.from);
  expect(moved(near, 1000, all).to).toBeCloseTo(all.to, 0);
});

test('a zoom ends at a second', () => {
  const all = whole(VERSIONS);
  let span = all;
  for (let i = 0; i < 50; i += 1) span = zoomed(span, 0.5, timeOf(version(50)), all);
  expect(span.to - span.from).toBe(1000);
});

test('a column shows the largest of its versions', () => {
  const drawn = bars(VERSIONS, whole(VERSIONS), 10);
  expect(drawn.length).toBeLessThanOrEqual(10);
  expect(drawn.map((bar) => bar.version)).toContain('100');
  for (const bar of drawn) {
    expect(bar.height).toBeGreaterThan(0);
    expect(bar.height).toBeLessThanOrEqual(1);
  }
});
