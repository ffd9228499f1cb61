import { useCallback, useEffect, useState } from 'react';

import { ApiError, finishLogin, onSignedOut, type Session, session, signIn, signOut } from './api';
import { FilePage } from './pages/FilePage';
import { FilesPage } from './pages/FilesPage';
import { SignIn } from './pages/SignIn';
import { Failure } from './parts/Failure';
import { Link } from './parts/Link';
import { LOGIN, replaceAddress, useRoute } from './route';

// The key of the link that `h5mirror web` printed. It leaves the address at once.
function takeKey(): string {
  const key = new URLSearchParams(location.hash.slice(1)).get('key') ?? '';
  if (key !== '') history.replaceState(null, '', location.pathname + location.search);
  return key;
}

// The parameters with which the issuer sent the browser back. Removes them from the address at
// once.
function takeAnswer(): URLSearchParams | undefined {
  if (location.pathname !== LOGIN) return undefined;
  const answer = new URLSearchParams(location.search);
  replaceAddress('/');
  return answer;
}

// `why`: the reason for which there is no session although a link was opened.
async function begin(): Promise<Session & { why?: string }> {
  const answer = takeAnswer();
  if (answer?.has('state') === true) {
    const done = await finishLogin(answer);
    replaceAddress(done.to);
    return done;
  }
  const key = takeKey();
  const now = await session();
  if (now.signed_in || key === '') return now;
  try {
    return await signIn({ key });
  } catch (error) {
    // A link of an earlier run, or the server asks for a token.
    if (error instanceof ApiError && error.status === 401) return { ...now, why: error.message };
    throw error;
  }
}

let beginning: Promise<Session & { why?: string }> | undefined;

export function Page() {
  const [now, setNow] = useState<Session & { why?: string }>();
  const [failure, setFailure] = useState('');
  const route = useRoute();

  useEffect(() => {
    const fail = (error: unknown) => setFailure(String(error instanceof Error ? error.message : error));
    // A browser does not load a page anew for another text behind the '#'.
    const look = () => {
      if (location.hash.startsWith('#key=')) begin().then(setNow, fail);
    };
    beginning ??= begin();
    beginning.then(setNow, (error: unknown) => {
      fail(error);
      session().then(setNow, () => undefined); // A login that came to nothing can be begun again.
    });
    onSignedOut((why) => setNow((old) => old && { ...old, signed_in: false, why }));
    window.addEventListener('hashchange', look);
    return () => window.removeEventListener('hashchange', look);
  }, []);

  const signedIn = useCallback((next: Session) => {
    setFailure('');
    setNow(next);
  }, []);

  const leave = useCallback(() => {
    signOut().then(
      (ended) => {
        setNow(ended);
        if (ended.url !== '') location.assign(ended.url);
      },
      (error: unknown) => setFailure(error instanceof Error ? error.message : 'unknown error'),
    );
  }, []);

  return (
    <>
      <a className="skip" href="#main">
        Skip to the content
      </a>
      <header className="top">
        <Link to={{ page: 'files' }} className="home">
          h5mirror
        </Link>
        <span className="server">{now?.server}</span>
        {now?.signed_in === true && (
          <button type="button" onClick={leave}>
            Sign out
          </button>
        )}
      </header>
      <main id="main" tabIndex={-1}>
        {failure !== '' && <Failure message={failure} />}
        {now === undefined && failure === '' && <p role="status">Loading…</p>}
        {now?.signed_in === false && <SignIn login={now.login} why={now.why ?? ''} onSignedIn={signedIn} />}
        {now?.signed_in === true && route.page === 'files' && <FilesPage />}
        {now?.signed_in === true && route.page === 'file' && <FilePage key={route.name} route={route} />}
      </main>
    </>
  );
}
