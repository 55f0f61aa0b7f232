/** A dialog: the browser's own, which keeps the focus, the Escape key and the page behind it in order. */

import { useEffect, useId, useRef, type ReactNode } from 'react';

interface Props {
  title: string;
  close: () => void;
  children: ReactNode;
  wide?: boolean;
}

export function Dialog({ title, close, children, wide = false }: Props) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = element.current;
    if (dialog === null || dialog.open) return;
    dialog.showModal();
    // The first field, else the button that does it: not the cross, which the browser would choose.
    const first = dialog.querySelector<HTMLElement>('form :is(input, textarea, select)') ?? dialog.querySelector<HTMLElement>('footer .primary, footer .danger');
    first?.focus();
  }, []);
  return (
    <dialog
      ref={element}
      className={wide ? 'dialog wide' : 'dialog'}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => {
        if (event.target === element.current) close();
      }}
    >
      <div className="dialog-body">
        <header>
          <h2 id={heading}>{title}</h2>
          <button type="button" className="close" aria-label="Close" onClick={close}>
            <svg viewBox="0 0 16 16" aria-hidden="true">
              <path d="M4 4l8 8m0-8l-8 8" />
            </svg>
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}
