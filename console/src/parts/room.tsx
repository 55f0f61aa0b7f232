import type { ReactNode } from 'react';

interface Props {
  title: string;
  /** Beside the title: tags, saved views. */
  beside?: ReactNode;
  actions?: ReactNode;
  children: ReactNode;
}

export function Room({ title, beside, actions, children }: Props) {
  return (
    <div className="room">
      <header className="room-head">
        <h1>{title}</h1>
        {beside}
        {actions !== undefined && <div className="room-actions">{actions}</div>}
      </header>
      {children}
    </div>
  );
}
