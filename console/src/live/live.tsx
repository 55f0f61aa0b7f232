/** Keeps what is on the page up to date while a person is signed in. */

import { createContext, useContext, useEffect, useState, type ReactNode } from 'react';
import { useQueryClient } from '@tanstack/react-query';
import { signInAgain } from '../api/client';
import { Feed, type FeedState } from './feed';
import { Refresher } from './refresh';

const Live = createContext<FeedState>('connecting');

export function LiveProvider({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const [state, setState] = useState<FeedState>('connecting');
  useEffect(() => {
    const refresher = new Refresher(queries);
    const address = `${window.location.protocol === 'https:' ? 'wss' : 'ws'}://${window.location.host}/ws/feed`;
    const feed = new Feed(address, {
      event: (envelope) => refresher.take(envelope),
      state: setState,
      gap: () => refresher.everything(),
      refused: signInAgain,
    });
    const hurry = () => feed.hurry();
    const seen = () => {
      if (document.hidden) return;
      hurry();
      refresher.seen();
    };
    window.addEventListener('online', hurry);
    document.addEventListener('visibilitychange', seen);
    return () => {
      window.removeEventListener('online', hurry);
      document.removeEventListener('visibilitychange', seen);
      feed.stop();
      refresher.stop();
    };
  }, [queries]);
  return <Live.Provider value={state}>{children}</Live.Provider>;
}

export function useFeedState(): FeedState {
  return useContext(Live);
}
