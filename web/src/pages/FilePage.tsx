import { lazy, Suspense, useCallback, useEffect, useMemo, useState } from 'react';

import { allowed as askAllowed, file } from '../api';
import { useAsked } from '../asked';
import { recoverCommand } from '../commands';
import { useNews } from '../events';
import { Looked } from '../looked';
import { type FileStatus, olderOriginal, personOf, type Shown } from '../model';
import { Differences } from '../parts/Differences';
import { Failure } from '../parts/Failure';
import { ObjectPanel } from '../parts/ObjectPanel';
import { StateBadge } from '../parts/StateBadge';
import { Timeline } from '../parts/Timeline';
import { VersionPanel } from '../parts/VersionPanel';
import { go, type Route } from '../route';
import { useVersions } from '../versions';
import { advice, bytes, counted, moment } from '../words';

// h5web is ten times as large as the rest of the page.
const Viewer = lazy(() => import('../parts/Viewer'));

export function FilePage({ route }: { route: Extract<Route, { page: 'file' }> }) {
  const { name, version, path } = route;
  const news = useNews(name);
  const first = useFirst(name);
  const status = news.status ?? first.status;
  const history = useVersions(name, news.versions);
  const { reload } = history;
  const ask = useCallback((signal: AbortSignal) => askAllowed(name, signal), [name]);
  const allowed = useAsked(ask);
  const [looked] = useState(() => new Looked());
  const [changed, setChanged] = useState('');
  const onChanged = useCallback(
    (says: string) => {
      setChanged(says);
      reload();
    },
    [reload],
  );
  const choose = (next: string) => go({ ...route, version: next }, 'replace');
  const cut = status?.last_cut ?? '0';
  const shown = useMemo<Shown | undefined>(() => {
    if (version !== '') return { kind: 'version', version };
    return cut === '0' ? undefined : { kind: 'cut', cut };
  }, [version, cut]);

  // One message: all else would fail by the same cause.
  if (first.failure !== '' && status === undefined) {
    return (
      <>
        <h1 className="name">{name}</h1>
        <Failure message={first.failure} />
      </>
    );
  }
  return (
    <>
      <h1 className="name">{name}</h1>
      {news.isLost && <p role="status">The news of this file are interrupted; they are asked for again.</p>}
      {status !== undefined && <Facts status={status} />}
      {history.failure !== '' && status !== undefined && <Failure message={history.failure} />}
      <Timeline
        versions={history.versions}
        chosen={version}
        isLive={status?.lease !== undefined}
        onChoose={choose}
        {...(history.more && { onMore: history.more })}
      />
      {changed !== '' && <p role="status">{changed}</p>}
      {allowed.failure !== '' && <p role="status">What you may change is not known: {allowed.failure}</p>}
      {version !== '' && (
        <VersionPanel
          name={name}
          version={version}
          about={history.versions.find((each) => each.version === version)}
          rights={allowed.value?.rights}
          isNewest={version === history.versions[0]?.version}
          onChanged={onChanged}
        />
      )}
      <section aria-label="Contents" className="contents">
        {shown === undefined ? (
          <p role="status">There is no state of this file to look into yet.</p>
        ) : (
          <Suspense fallback={<p role="status">Loading the viewer…</p>}>
            <Viewer name={name} shown={shown} initialPath={path} onLooked={looked.set} />
          </Suspense>
        )}
      </section>
      <ObjectPanel
        name={name}
        version={version}
        looked={looked}
        rights={allowed.value?.rights}
        original={allowed.value?.original ?? null}
        onChoose={choose}
        onChanged={onChanged}
      />
      <Differences name={name} versions={history.versions} chosen={version} />
    </>
  );
}

// Asked for once, as an event stream that fails does not say why.
function useFirst(name: string): { status: FileStatus | undefined; failure: string } {
  const [first, setFirst] = useState<{ status: FileStatus | undefined; failure: string }>({
    status: undefined,
    failure: '',
  });
  useEffect(() => {
    const ended = new AbortController();
    file(name, ended.signal).then(
      (status) => setFirst({ status, failure: '' }),
      (error: unknown) => {
        if (ended.signal.aborted) return;
        setFirst({ status: undefined, failure: error instanceof Error ? error.message : String(error) });
      },
    );
    return () => ended.abort();
  }, [name]);
  return first;
}

function Facts({ status }: { status: FileStatus }) {
  const todo = advice(status.name, status.mirror);
  const { lease } = status;
  const older = olderOriginal(status);
  return (
    <>
      <dl className="facts">
        <dt>State</dt>
        <dd>
          <StateBadge mirror={status.mirror} now={Date.now()} {...(older && { word: 'newer than the local file' })} />
        </dd>
        <dt>Writer</dt>
        <dd>
          {lease === undefined
            ? 'nobody'
            : `${personOf(lease.verified_user, lease.writer)}, ${lease.writer?.program ?? '?'} on ` +
              `${lease.writer?.host ?? '?'} since ${moment(lease.since_time)}`}
        </dd>
        <dt>Size</dt>
        <dd>{bytes(status.size_bytes)}</dd>
        <dt>History</dt>
        <dd>
          {counted(Number(status.version_count), 'version')}, {bytes(Number(status.history_bytes) + Number(status.stage_bytes))}
        </dd>
        {status.owner !== '' && (
          <>
            <dt>Owner</dt>
            <dd>{status.owner}</dd>
          </>
        )}
      </dl>
      {older !== undefined && (
        <p className="elsewhere">
          The newest version was made on the server, and {older.host}:{older.path} is as before. To bring it to that version, run
          there: <code>{recoverCommand(older.path)}</code>
        </p>
      )}
      {todo !== '' && <Failure message={`${todo} ${status.mirror?.detail ?? ''}`} />}
      {status.history_notice !== '' && <Failure message={status.history_notice} />}
    </>
  );
}
