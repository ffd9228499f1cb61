// h5web's calls for one file at one state after the other.
//
// h5web drops all that it has when a file changes, and asks again. A page would blink at each cut. So
// prepare() asks for the next state what h5web asked for the present one, and h5web is told of the
// next state once the answers are there.

import { messageOf } from './api';
import { keyOf, queryOf, type Shown } from './model';

export interface FetcherOptions {
  abortSignal?: AbortSignal;
}

export type Fetcher = (
  url: string,
  params: Record<string, string>,
  options?: FetcherOptions,
) => Promise<ArrayBuffer>;

// The state is not held any more: a newer one is to be shown.
export class GoneError extends Error {}

// Of the answers that are asked for ahead: what a page shows is rarely more.
const AHEAD_MAX = 40;

export class StateFetcher {
  private readonly answers = new Map<string, Promise<ArrayBuffer>>();
  // The requests of h5web for this state.
  private readonly asked = new Map<string, { url: string; params: Record<string, string> }>();

  public constructor(
    public readonly shown: Shown,
    private readonly onGone: () => void = () => undefined,
    // A group has more children than an answer.
    private readonly onLeftOut: (path: string, count: number) => void = () => undefined,
  ) {}

  public readonly fetch: Fetcher = async (url, params, options = {}) => {
    const query = this.address(url, params);
    this.asked.set(query, { url, params });
    const ahead = this.answers.get(query);
    if (ahead !== undefined) {
      this.answers.delete(query); // h5web keeps it from here on.
      return ahead;
    }
    return this.ask(query, options.abortSignal);
  };

  // Of another state, with answers to what was asked of this one. An answer that fails is asked again.
  public async prepare(next: Shown): Promise<StateFetcher> {
    const fetcher = new StateFetcher(next, this.onGone, this.onLeftOut);
    const wanted = [...this.asked.values()].slice(-AHEAD_MAX);
    await Promise.allSettled(
      wanted.map(async ({ url, params }) => {
        const query = fetcher.address(url, params);
        const answer = fetcher.ask(query, undefined);
        await answer;
        fetcher.answers.set(query, answer);
      }),
    );
    return fetcher;
  }

  private address(url: string, params: Record<string, string>): string {
    return `${url}?${new URLSearchParams({ ...params, ...queryOf(this.shown) }).toString()}`;
  }

  private async ask(query: string, signal: AbortSignal | undefined): Promise<ArrayBuffer> {
    let response: Response;
    try {
      response = await fetch(query, { credentials: 'same-origin', ...(signal && { signal }) });
    } catch (error) {
      // h5web knows its own cancellations by what it has given as their reason.
      if (signal?.aborted === true && signal.reason instanceof Error) throw signal.reason;
      throw error;
    }
    if (response.ok) {
      const leftOut = Number(response.headers.get('H5mirror-Left-Out') ?? '0');
      if (leftOut > 0) this.onLeftOut(new URLSearchParams(query.split('?')[1]).get('path') ?? '/', leftOut);
      return response.arrayBuffer();
    }
    const message = await messageOf(response);
    if (response.status === 410) {
      this.onGone();
      throw new GoneError(message);
    }
    throw new Error(message);
  }
}

export function isSame(a: Shown, b: Shown): boolean {
  return keyOf(a) === keyOf(b);
}
