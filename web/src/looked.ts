// The object that is selected in h5web; '': none is, or it is not known yet. No state of React: a page that is drawn anew for it
// would make h5web ask again.
export class Looked {
  private readonly told = new Set<() => void>();
  private path = '';

  public readonly get = (): string => this.path;

  public readonly set = (path: string): void => {
    if (path === this.path) return;
    this.path = path;
    for (const tell of this.told) tell();
  };

  public readonly subscribe = (tell: () => void): (() => void) => {
    this.told.add(tell);
    return () => {
      this.told.delete(tell);
    };
  };
}
