// The object that h5web has shown last. No state of React: h5web asks while it is being drawn, and a page that is drawn anew for
// that makes it ask again.
export class Looked {
  private readonly told = new Set<() => void>();

  public constructor(private path: string) {}

  public readonly get = (): string => this.path;

  public readonly set = (path: string): void => {
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
