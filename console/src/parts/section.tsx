import type { ReactNode } from 'react';

/** A part of a room: what it is, what can be made in it, and what there is. */
export function Section({ title, about, action, children }: { title?: string; about?: string; action?: ReactNode; children: ReactNode }) {
  return (
    <section>
      <header className="section-head">
        {title !== undefined && <h2>{title}</h2>}
        {about !== undefined && <p>{about}</p>}
        {action}
      </header>
      {children}
    </section>
  );
}
