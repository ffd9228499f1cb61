import { expect, test } from 'vitest';

import { parse, pathOf, type Route } from './route';

const ROUTES: Route[] = [
  { page: 'files' },
  { page: 'file', name: 'run.h5', version: '', path: '/' },
  { page: 'file', name: 'lab 1/a#b?c%.h5', version: '12', path: '/entry/data set' },
  { page: 'file', name: 'über/a@2.h5', version: '', path: '/x&y=z' },
];

test.each(ROUTES)('$name survives being an address', (route) => {
  const [pathname = '', search = ''] = pathOf(route).split('?');
  expect(parse(pathname, search)).toEqual(route);
});

test('what is no number of a version is none', () => {
  expect(parse('/files/run.h5', 'version=latest')).toMatchObject({ version: '' });
});

test('an address that is encoded wrongly stands for itself', () => {
  expect(parse('/files/50%.h5', '')).toMatchObject({ name: '50%.h5' });
});
