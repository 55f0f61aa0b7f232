/** Says what has happened, quietly, and to screen readers too. */

import { createContext, useCallback, useContext, useRef, useState, type ReactNode } from 'react';

const Say = createContext<(text: string) => void>(() => {});
const SHOWN_MS = 6_000;

export function ToastProvider({ children }: { children: ReactNode }) {
  const [text, setText] = useState('');
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const say = useCallback((next: string) => {
    clearTimeout(timer.current);
    setText(next);
    timer.current = setTimeout(() => setText(''), SHOWN_MS);
  }, []);
  return (
    <Say.Provider value={say}>
      {children}
      <div className="toasts" role="status" aria-live="polite">
        {text !== '' && <div className="toast">{text}</div>}
      </div>
    </Say.Provider>
  );
}

export function useSay(): (text: string) => void {
  return useContext(Say);
}
