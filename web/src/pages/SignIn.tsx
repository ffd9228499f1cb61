import { type FormEvent, useState } from 'react';

import { beginLogin, type Session, signIn } from '../api';
import { Failure } from '../parts/Failure';

interface Props {
  login: string; // the issuer's name; '': there is none
  why: string; // a sign-in is needed, where something was tried before; else ''
  onSignedIn: (session: Session) => void;
}

export function SignIn({ login, why, onSignedIn }: Props) {
  const [token, setToken] = useState('');
  const [failure, setFailure] = useState('');
  const [isBusy, setBusy] = useState(false);

  async function attempt(step: () => Promise<void>) {
    setBusy(true);
    setFailure('');
    try {
      await step();
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(false);
    }
  }

  function logIn() {
    void attempt(async () => location.assign(await beginLogin(location.pathname + location.search)));
  }

  function send(event: FormEvent) {
    event.preventDefault();
    void attempt(async () => onSignedIn(await signIn({ token: token.trim() })));
  }

  return (
    <form className="sign-in" onSubmit={send}>
      <h1>Sign in</h1>
      {why !== '' && <p role="status">{why}</p>}
      {login !== '' && (
        <button type="button" disabled={isBusy} onClick={logIn}>
          Log in at {login}
        </button>
      )}
      <p>
        {login !== '' && 'Or: '}
        Give a token of the server, or open the link that <code>h5mirror web</code> printed when it started.
      </p>
      <label htmlFor="token">Token</label>
      <input
        id="token"
        type="password"
        autoComplete="off"
        spellCheck={false}
        required
        value={token}
        onChange={(event) => setToken(event.target.value)}
      />
      <button type="submit" disabled={isBusy}>
        {isBusy ? 'Signing in…' : 'Sign in'}
      </button>
      {failure !== '' && <Failure message={failure} />}
    </form>
  );
}
