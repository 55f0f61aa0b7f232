import { Component, type ReactNode } from 'react';
import { Empty } from './notes';

interface Props {
  /** Where it stands: at another address the room is drawn anew. */
  at: string;
  children: ReactNode;
}

/** A mistake in one room leaves the others: it says so, and what to do, instead of an empty page. */
export class Boundary extends Component<Props, { error?: Error; at?: string }> {
  override state: { error?: Error; at?: string } = {};

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  static getDerivedStateFromProps({ at }: Props, state: { error?: Error; at?: string }) {
    return state.at === at ? null : { at, error: undefined };
  }

  override render() {
    if (this.state.error === undefined) return this.props.children;
    return (
      <Empty title="This page has a mistake" command={`${this.state.error.name}: ${this.state.error.message}`}>
        <p>
          Nothing was changed by it. <a href={this.props.at}>Load the page again</a>; if it goes on, the command line does the same
          things. Report this to the operators of Interlock:
        </p>
      </Empty>
    );
  }
}
