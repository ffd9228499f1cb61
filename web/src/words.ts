// Numbers, times and states as people read them.

import { type MirrorState, type MirrorStatus, stateOf } from './model';

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'] as const;

export function bytes(count: number | string): string {
  let value = Number(count);
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  const digits = unit === 0 || Math.abs(value) >= 100 ? 0 : 1;
  return `${value.toFixed(digits)} ${UNITS[unit] ?? ''}`;
}

// Of bytes in so many seconds.
export function rate(count: number, seconds: number): string {
  return `${bytes(Math.round(count / seconds))}/s`;
}

// "1 object", "2,000 objects".
export function counted(count: number, word: string): string {
  return `${count.toLocaleString('en')} ${word}${count === 1 ? '' : 's'}`;
}

// Of two moments in milliseconds; "just now" below a second, as clocks differ.
export function duration(ms: number): string {
  const seconds = Math.max(0, ms / 1000);
  if (seconds < 1) return 'less than 1 s';
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

export function moment(time: string | undefined): string {
  if (time === undefined) return 'unknown';
  const parsed = new Date(time);
  return Number.isNaN(parsed.getTime())
    ? time
    : parsed.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
}

export function momentOf(ms: number): string {
  return Number.isNaN(ms) ? 'unknown' : moment(new Date(ms).toISOString());
}

const STATE_WORDS: Record<MirrorState, string> = {
  CONNECTED: 'being written',
  DEGRADED: 'not protected',
  RESYNCING: 'catching up',
  IN_SYNC: 'in sync',
  DIVERGED: 'diverged',
};

export function stateWord(state: MirrorState | undefined): string {
  return state === undefined ? 'not known' : STATE_WORDS[state];
}

// The bytes and cuts that the mirror lacks, or does not have on disk yet; '': none, or unknown.
export function lag(mirror: MirrorStatus | undefined, now: number): string {
  if (mirror === undefined) return '';
  const parts = [];
  if (mirror.pending_since_time !== undefined) {
    // Then all was durable. A part of what came later may be.
    parts.push(`durable up to ${duration(now - Date.parse(mirror.pending_since_time))} ago`);
  }
  if (Number(mirror.pending_bytes) > 0) parts.push(`${bytes(mirror.pending_bytes)} to come`);
  const cuts = Number(mirror.pending_cuts);
  if (cuts > 0) parts.push(`${cuts} ${cuts === 1 ? 'cut' : 'cuts'} not yet durable`);
  if (stateOf(mirror) === 'RESYNCING' && Number(mirror.resync_total_bytes) > 0) {
    const share = Number(mirror.resync_sent_bytes) / Number(mirror.resync_total_bytes);
    parts.push(`${Math.min(100, Math.floor(100 * share))} % brought`);
  }
  return parts.join(', ');
}

// The advice to a person about a file; '': none.
export function advice(name: string, mirror: MirrorStatus | undefined): string {
  switch (stateOf(mirror)) {
    case 'DIVERGED':
      return (
        `The local file and its mirror have both changed, and only you can say which is right. On the writer's ` +
        `machine, \`h5mirror resync ${name}\` shows both and takes the one that you choose.`
      );
    case 'DEGRADED':
      return (
        `Changes go to the local file alone. The mirror catches up by itself once its writer reaches the server ` +
        `again. If that takes long, \`h5mirror doctor\` on the writer's machine says why.`
      );
    default:
      return '';
  }
}
