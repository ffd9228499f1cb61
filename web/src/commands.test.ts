import { expect, test } from 'vitest';

import { recoverCommand, restoreCommand } from './commands';

test('a command names the file as it is called there, as a shell takes it', () => {
  const wanted = { what: 'restore', file: 'a.h5', version: '2', path: '/x', replace: false } as const;
  expect(restoreCommand(wanted)).toBe('h5mirror restore a.h5@2:/x');
  expect(restoreCommand({ ...wanted, replace: true }, '/home/ann/a.h5')).toBe('h5mirror restore /home/ann/a.h5@2:/x --replace');
  expect(recoverCommand("/it's $HOME.h5")).toBe("h5mirror recover '/it'\\''s $HOME.h5'");
});
