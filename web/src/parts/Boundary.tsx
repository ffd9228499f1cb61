import { Component, type ReactNode } from 'react';

import { Failure } from './Failure';

// Keeps the page where a part of it cannot be drawn: what a file's process has said may be anything.
export class Boundary extends Component<{ children: ReactNode }, { isBroken: boolean }> {
  public override state = { isBroken: false };

  public static getDerivedStateFromError(): { isBroken: boolean } {
    return { isBroken: true };
  }

  public override render(): ReactNode {
    return this.state.isBroken ? (
      <Failure message="What came cannot be shown. The file may be damaged." />
    ) : (
      this.props.children
    );
  }
}
