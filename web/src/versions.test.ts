import { expect, test } from 'vitest';

import { version } from './testing/samples';
import { merged } from './versions';

test('versions are newest first by number, and news replace what was known', () => {
  const known = [version(10), version(9), version(2)];
  const all = merged(known, [version(11), version(10, { tags: ['raw'] })]);
  expect(all.map((each) => each.version)).toEqual(['11', '10', '9', '2']);
  expect(all[1]?.tags).toEqual(['raw']);
});
