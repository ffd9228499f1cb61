// What a server tells, for tests.

import type { Change } from '../findings';
import type { FileSummary, MirrorStatus, Version } from '../model';

export function mirror(state: string, more: Partial<MirrorStatus> = {}): MirrorStatus {
  return {
    state: `MIRROR_STATE_${state}`,
    pending_bytes: '0',
    pending_cuts: '0',
    resync_total_bytes: '0',
    resync_sent_bytes: '0',
    detail: '',
    ...more,
  };
}

export function summaryOf(name: string, state?: string, more: Partial<FileSummary> = {}): FileSummary {
  return {
    name,
    size_bytes: '2048',
    modify_time: '2026-11-28T12:00:00Z',
    ...(state !== undefined && { mirror: mirror(state) }),
    ...more,
  };
}

export function version(number: number, more: Partial<Version> = {}): Version {
  return {
    version: String(number),
    cut: String(number * 10),
    server_time: new Date(Date.UTC(2026, 0, 1) + number * 60_000).toISOString(),
    verified_user: 'anna',
    comment: '',
    size_bytes: '4096',
    changed_pages: '1',
    changed_bytes: '512',
    generation: '1',
    tags: [],
    ...more,
  };
}

export function change(path: string, more: Partial<Change> = {}): Change {
  return {
    change: 'changed',
    path,
    object: 'dataset',
    what: '',
    name: '',
    old_path: '',
    note: '',
    old: null,
    new: null,
    elements: 0,
    is_chunked: false,
    region_count: 0,
    regions: [],
    ...more,
  };
}

// An answer of the web process.
export function answer(body: unknown, status = 200): Response {
  return new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json' } });
}
