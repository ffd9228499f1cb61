// Commands of `h5mirror` for a person's shell.

import type { Wanted } from './findings';

function word(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

// `file`: as a shell on the writer's machine names it.
export function restoreCommand(wanted: Extract<Wanted, { what: 'restore' }>, file = wanted.file): string {
  return `h5mirror restore ${word(`${file}@${wanted.version}:${wanted.path}`)}${wanted.replace ? ' --replace' : ''}`;
}

export function recoverCommand(file: string): string {
  return `h5mirror recover ${word(file)}`;
}
