import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';

import type { LastWriter } from '../model';
import { pathOf, Sparkline } from './Sparkline';
import { WriterName } from './WriterName';

const LAST: LastWriter = {
  writer: { claimed_user: 'anna', host: 'node7', program: 'sim.x', pid: 1 },
  verified_user: 'unix:anna',
  is_writing: true,
};

afterEach(cleanup);

function nameOf(last: LastWriter | undefined): string {
  const { container, unmount } = render(<WriterName last={last} />);
  const text = container.textContent;
  unmount();
  return text;
}

test('a writer is a user on a machine with a program, and what nobody has verified is told', () => {
  expect(nameOf(LAST)).toBe('unix:anna@node7 sim.x (writing now)');
  expect(nameOf({ ...LAST, is_writing: false })).toBe('unix:anna@node7 sim.x');
  expect(nameOf({ ...LAST, verified_user: '' })).toBe('anna@node7 sim.x (writing now, not verified)');
});

test('what the server does not know of a writer is left out', () => {
  expect(nameOf(undefined)).toBe('not known');
  expect(nameOf({ verified_user: '', is_writing: false })).toBe('not known');
  const nobody = { claimed_user: '', host: 'node7', program: '', pid: 0 };
  expect(nameOf({ writer: nobody, verified_user: '', is_writing: false })).toBe('unknown@node7 (not verified)');
});

test('the line is as high as its largest value, and flat where nothing came', () => {
  expect(pathOf([0, 5, 10])).toBe('M0,20.0L1,10.0L2,0.0');
  expect(pathOf([0, 0])).toBe('M0,20.0L1,20.0');
});

test('the sparkline says in words how fast bytes come', () => {
  const { rerender } = render(<Sparkline writes={{ interval_seconds: 5, received_bytes: ['0', '20480', '10240', '5'] }} />);
  const label = 'Bytes a second in the last 20 s: now 2.0 KiB/s, at most 4.0 KiB/s';
  expect(screen.getByRole('img').getAttribute('aria-label')).toBe(label);
  rerender(<Sparkline writes={{ interval_seconds: 5, received_bytes: ['0', '0', '5120'] }} />);
  expect(screen.getByRole('img').getAttribute('aria-label')).toContain('now 1.0 KiB/s');
  rerender(<Sparkline writes={undefined} />);
  expect(screen.queryByRole('img')).toBeNull();
  expect(screen.getByText('none lately')).toBeTruthy();
});
