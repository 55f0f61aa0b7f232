import type { ButtonHTMLAttributes } from 'react';

type Look = 'primary' | 'plain' | 'danger' | 'quiet';

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look;
  /** Its request is under way: it cannot be pressed twice. */
  busy?: boolean;
  /** The key that does the same. */
  press?: string;
}

export function Button({ look = 'plain', busy = false, press, children, className = '', disabled, ...rest }: Props) {
  return (
    <button
      type="button"
      className={`button ${look} ${className}`}
      disabled={disabled === true || busy}
      aria-busy={busy}
      aria-keyshortcuts={press}
      {...rest}
    >
      {children}
      {press !== undefined && <kbd aria-hidden="true">{press}</kbd>}
    </button>
  );
}
