import { expect, test } from 'vitest';

import { mirror } from './testing/samples';
import { advice, bytes, counted, duration, lag, moment, stateWord } from './words';

test.each([
  ['0', '0 B'],
  ['1023', '1023 B'],
  ['1024', '1.0 KiB'],
  ['1048575', '1024 KiB'],
  ['2147483648', '2.0 GiB'],
  ['9007199254740993', '8.0 PiB'],
])('%s bytes are %s', (count, text) => {
  expect(bytes(count)).toBe(text);
});

test.each([
  [-5000, 'less than 1 s'],
  [999, 'less than 1 s'],
  [119_000, '119 s'],
  [120_000, '2 min'],
  [7_200_000, '2 h'],
  [172_800_000, '2 days'],
])('%d ms are %s', (ms, text) => {
  expect(duration(ms)).toBe(text);
});

test('a time that is none is shown as it is', () => {
  expect(moment('soon')).toBe('soon');
  expect(moment(undefined)).toBe('unknown');
});

test('the lag says until when all is durable, what is to come, and how much a resync has brought', () => {
  const now = Date.parse('2026-11-28T12:00:10Z');
  expect(lag(undefined, now)).toBe('');
  expect(lag(mirror('IN_SYNC'), now)).toBe('');
  const waits = { pending_since_time: '2026-11-28T12:00:00Z', pending_cuts: '9' };
  expect(lag(mirror('CONNECTED', waits), now)).toBe('durable up to 10 s ago, 9 cuts not yet durable');
  const lacks = { pending_since_time: '2026-11-28T12:00:00Z', pending_bytes: '2048', pending_cuts: '1' };
  expect(lag(mirror('CONNECTED', lacks), now)).toBe('durable up to 10 s ago, 2.0 KiB to come, 1 cut not yet durable');
  const resync = { resync_total_bytes: '1000', resync_sent_bytes: '999' };
  expect(lag(mirror('RESYNCING', resync), now)).toBe('99 % brought');
});

test('only what a person can mend has advice', () => {
  expect(advice('run.h5', mirror('DIVERGED'))).toContain('`h5mirror resync run.h5`');
  expect(advice('run.h5', mirror('DEGRADED'))).toContain('h5mirror doctor');
  for (const state of ['CONNECTED', 'RESYNCING', 'IN_SYNC', 'UNSPECIFIED']) {
    expect(advice('run.h5', mirror(state))).toBe('');
  }
});

test('of one thing the word is the singular', () => {
  expect([0, 1, 2000].map((each) => counted(each, 'object'))).toEqual(['0 objects', '1 object', '2,000 objects']);
});

test('a state that the server does not tell is not known', () => {
  expect(stateWord(undefined)).toBe('not known');
});
