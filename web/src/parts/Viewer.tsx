import { App, H5GroveProvider } from '@h5web/app';
import { useCallback, useEffect, useMemo, useRef, useState } from 'react';

import { exportUrl } from '../exports';
import { isSame, StateFetcher } from '../fetcher';
import { keyOf, type Shown } from '../model';
import { watchSelection } from '../selected';

interface Props {
  name: string;
  shown: Shown;
  initialPath: string;
  onLooked?: (path: string) => void; // another object is selected; '': none
}

function wordOf(shown: Shown): string {
  return shown.kind === 'version' ? `Version ${shown.version}` : `Cut ${shown.cut}`;
}

// h5web at one state of the file. Another state comes with what is selected now. While one is being
// prepared, those between are left out; so are all while nobody can see the page.
export default function Viewer({ name, shown, initialPath, onLooked }: Props) {
  const isSeen = useSeen();
  const isPreparing = useRef(false);
  const lastGone = useRef('');
  const replace = useRef<() => void>(() => undefined);
  const onGone = useCallback(() => replace.current(), []);
  const [leftOut, setLeftOut] = useState<ReadonlyMap<string, number>>(new Map());
  const onLeftOut = useCallback(
    (path: string, count: number) => setLeftOut((old) => new Map(old).set(path, count)),
    [],
  );
  const [fetcher, setFetcher] = useState(() => new StateFetcher(shown, onGone, onLeftOut));

  useEffect(() => {
    // A cut that is not held any more is opened anew, once: the newest one then stands for it.
    replace.current = () => {
      if (fetcher.shown.kind === 'version' || lastGone.current === keyOf(fetcher.shown)) return;
      lastGone.current = keyOf(fetcher.shown);
      setFetcher(new StateFetcher(fetcher.shown, onGone, onLeftOut));
    };
  }, [fetcher, onGone, onLeftOut]);

  useEffect(() => {
    if (!isSeen || isPreparing.current || isSame(shown, fetcher.shown)) return;
    isPreparing.current = true;
    void fetcher.prepare(shown).then((next) => {
      isPreparing.current = false;
      setFetcher(next); // This effect then looks whether that is still the newest.
    });
  }, [shown, isSeen, fetcher]);

  const drawn = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (drawn.current === null || onLooked === undefined) return undefined;
    const end = watchSelection(drawn.current, onLooked);
    return () => {
      end();
      onLooked('');
    };
  }, [onLooked]);

  const getExportURL = useMemo(() => exportUrl(name, fetcher.shown), [name, fetcher]);

  return (
    <>
      <p className="which" role="status">
        {wordOf(fetcher.shown)}
        {shown.kind === 'version' && !isSame(shown, fetcher.shown) && `; loading version ${shown.version}…`}
      </p>
      {[...leftOut].map(([path, count]) => (
        <p key={path} role="status">
          {path} has {count.toLocaleString()} objects more than the tree shows. The search beside the tree finds
          them.
        </p>
      ))}
      <div ref={drawn} className="h5web">
        <H5GroveProvider
          url={`${location.origin}/api/h5`}
          filepath={name}
          fetcher={fetcher.fetch}
          getExportURL={getExportURL}
        >
          <App initialPath={initialPath} />
        </H5GroveProvider>
      </div>
    </>
  );
}

function useSeen(): boolean {
  const [isSeen, setSeen] = useState(!document.hidden);
  useEffect(() => {
    const look = () => setSeen(!document.hidden);
    document.addEventListener('visibilitychange', look);
    return () => document.removeEventListener('visibilitychange', look);
  }, []);
  return isSeen;
}
