// The answers of the server's HTTP (docs/reference/http.md): protobuf's JSON. There a 64-bit number
// is a text, and an unset message is left out.

export type MirrorState = 'CONNECTED' | 'DEGRADED' | 'RESYNCING' | 'IN_SYNC' | 'DIVERGED';

export const MIRROR_STATES: readonly MirrorState[] = [
  'CONNECTED',
  'DEGRADED',
  'RESYNCING',
  'IN_SYNC',
  'DIVERGED',
];

export interface Writer {
  claimed_user: string;
  host: string;
  program: string;
  pid: number;
}

export interface Version {
  version: string;
  cut: string;
  server_time?: string;
  writer?: Writer;
  verified_user: string;
  comment: string;
  size_bytes: string;
  changed_pages: string;
  changed_bytes: string;
  generation: string;
  tags: string[];
}

export interface MirrorStatus {
  state: string;
  since_time?: string;
  pending_bytes: string;
  pending_cuts: string;
  pending_since_time?: string;
  resync_total_bytes: string;
  resync_sent_bytes: string;
  detail: string;
}

// The program that holds a file's lease, else the one that made its newest version.
export interface LastWriter {
  writer?: Writer;
  verified_user: string;
  is_writing: boolean;
  time?: string;
}

// Bytes that programs have sent in intervals of equal length, the oldest first.
export interface RecentWrites {
  interval_seconds: number;
  received_bytes: string[];
}

export interface FileSummary {
  name: string;
  size_bytes: string;
  modify_time?: string;
  mirror?: MirrorStatus;
  last_writer?: LastWriter;
  history_bytes?: string; // not there: the server could not look at the file
  recent_writes?: RecentWrites; // not there: nothing has come lately
}

export interface FileList {
  files: FileSummary[];
  next_page_token: string;
}

export interface LeaseHolder {
  writer?: Writer;
  verified_user: string;
  since_time?: string;
}

// Where a file is written from.
export interface Origin {
  host: string;
  path: string;
}

export interface FileStatus {
  name: string;
  size_bytes: string;
  last_cut: string;
  durable_cut: string;
  newest_version?: Version;
  version_count: string;
  lease?: LeaseHolder;
  stage_bytes: string;
  history_bytes: string;
  history_notice: string;
  mirror?: MirrorStatus;
  owner: string;
  origin?: Origin;
}

// Which bytes of a file are shown: those of a version, or of the newest cut that a program has made.
export type Shown = { kind: 'version'; version: string } | { kind: 'cut'; cut: string };

export function keyOf(shown: Shown): string {
  return shown.kind === 'version' ? `v${shown.version}` : `c${shown.cut}`;
}

// How a call names it.
export function queryOf(shown: Shown): Record<string, string> {
  return shown.kind === 'version' ? { version: shown.version } : { cut: shown.cut };
}

// undefined: the server tells no state, as of a file that no program has mirrored.
export function stateOf(mirror: MirrorStatus | undefined): MirrorState | undefined {
  const name = mirror?.state.replace(/^MIRROR_STATE_/, '');
  return MIRROR_STATES.find((state) => state === name);
}

// A path that no local file has: of a file that is on the server only.
const REMOTE = '(mode=remote';

// The local file, where the newest version was made on the server, so that the file is older; undefined: it is not so. The
// program `h5mirror` makes versions there (rollback, promote); one that takes a local file tells a state.
export function olderOriginal(status: FileStatus): Origin | undefined {
  const { origin, newest_version: newest, lease } = status;
  if (origin === undefined || origin.path === '' || origin.path.startsWith(REMOTE)) return undefined;
  if (stateOf(status.mirror) !== undefined || lease !== undefined || newest?.cut !== status.last_cut) return undefined;
  return newest.writer?.program.startsWith('h5mirror') === true ? origin : undefined;
}

// The caller that made a version, or writes. A name that the server verified counts more than the
// client's own.
export function personOf(verified: string, writer: Writer | undefined): string {
  if (verified !== '') return verified;
  return writer === undefined || writer.claimed_user === '' ? 'unknown' : `${writer.claimed_user} (not verified)`;
}
