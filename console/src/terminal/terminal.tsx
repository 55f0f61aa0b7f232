/** The live output of a step: coloured, searched, followed, downloaded; it goes on by itself after a lost connection. */

import { memo, useEffect, useMemo, useRef, useState } from 'react';
import { Text } from '../parts/text';
import { OutputFollow, type FollowState } from './follow';
import { Screen, textOf, type Line } from './screen';

interface Props {
  run: string;
  step: string;
  /** One attempt only; all of them, one after the other, where it is left out. */
  attempt?: number | undefined;
  /** The step has stopped. Its stream stays open, because it can begin again. */
  stopped?: boolean;
  tall?: boolean;
}

const WORDS: Record<FollowState, string> = { connecting: 'Connecting …', live: 'Live', lost: 'Reconnecting …', ended: 'Ended' };

function addressOf({ run, step }: Props): string {
  return `/api/v1/runs/${encodeURIComponent(run)}/steps/${encodeURIComponent(step)}/output`;
}

export function Terminal(props: Props) {
  const { attempt, stopped = false, tall = false } = props;
  const address = addressOf(props);
  const only = attempt === undefined ? '' : `?attempt=${attempt}`;
  const { lines, dropped, state: stream } = useOutput(`${address}/stream${only}`);
  const state = stopped && stream === 'live' ? 'ended' : stream;
  const [follows, setFollows] = useState(true);
  const [wanted, setWanted] = useState('');
  const [at, setAt] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const hits = useMemo(() => {
    const needle = wanted.toLowerCase();
    return needle === '' ? [] : lines.filter((line) => textOf(line).toLowerCase().includes(needle)).map((line) => line.number);
  }, [lines, wanted]);
  const hitSet = useMemo(() => new Set(hits), [hits]);
  const current = hits[at % Math.max(1, hits.length)];
  useEffect(() => {
    const element = box.current;
    if (follows && wanted === '' && element !== null) element.scrollTop = element.scrollHeight;
  }, [lines, follows, wanted]);
  useEffect(() => {
    const element = box.current;
    const line = current === undefined ? null : element?.querySelector<HTMLElement>(`[data-line="${current}"]`);
    if (element == null || line == null) return;
    // Only the box moves: the page stays where it is.
    const from = line.getBoundingClientRect().top - element.getBoundingClientRect().top;
    element.scrollTop += from - (element.clientHeight - line.clientHeight) / 2;
  }, [current]);
  function scrolled() {
    const element = box.current;
    if (element === null || wanted !== '') return;
    setFollows(element.scrollHeight - element.scrollTop - element.clientHeight < 24);
  }
  return (
    <div className={`terminal ${tall ? 'tall' : ''}`}>
      <div className="terminal-bar">
        <span className={`terminal-state ${state}`} role="status">
          <span className="dot" aria-hidden="true" />
          {WORDS[state]}
        </span>
        <input
          type="search"
          value={wanted}
          placeholder="Search the output"
          aria-label="Search the output"
          onChange={(event) => (setWanted(event.target.value), setAt(0))}
          onKeyDown={(event) => {
            if (event.key !== 'Enter' || hits.length === 0) return;
            setAt((at + (event.shiftKey ? hits.length - 1 : 1)) % hits.length);
          }}
        />
        {wanted !== '' && (
          <span className="terminal-hits" role="status">
            {hits.length === 0 ? 'none' : `${(at % hits.length) + 1} of ${hits.length}`}
          </span>
        )}
        <button type="button" aria-pressed={follows} onClick={() => setFollows(!follows)} title="Stay at the end as more is written">
          Follow
        </button>
        <a href={`${address}?format=text${attempt === undefined ? '' : `&attempt=${attempt}`}`} download>
          Download
        </a>
      </div>
      <div className="terminal-lines" ref={box} onScroll={scrolled} tabIndex={0} role="log" aria-label="Output" aria-live="off">
        {dropped > 0 && <p className="terminal-note">The first {dropped.toLocaleString()} lines are not shown; the download has them.</p>}
        {lines.length === 0 && <p className="terminal-note">{state === 'ended' ? 'Nothing was written.' : 'Nothing yet.'}</p>}
        {lines.map((line) => (
          <LineView key={line.number} line={line} hit={hitSet.has(line.number)} here={line.number === current} />
        ))}
      </div>
    </div>
  );
}

const LineView = memo(function LineView({ line, hit, here }: { line: Line; hit: boolean; here: boolean }) {
  return (
    <div className={`terminal-line ${line.stream} ${hit ? 'hit' : ''} ${here ? 'here' : ''}`} data-line={line.number}>
      <span className="terminal-number" aria-hidden="true">
        {line.number}
      </span>
      <span className="terminal-text">
        {line.spans.map((span, index) => (
          <span key={index} className={span.look === '' ? undefined : span.look}>
            <Text of={span.text} lines />
          </span>
        ))}
      </span>
    </div>
  );
});

/** The lines so far. What comes in a burst is drawn at once. */
function useOutput(address: string): { lines: Line[]; dropped: number; state: FollowState } {
  const [shown, setShown] = useState<{ lines: Line[]; dropped: number }>({ lines: [], dropped: 0 });
  const [state, setState] = useState<FollowState>('connecting');
  useEffect(() => {
    const screen = new Screen();
    let drawing: ReturnType<typeof setTimeout> | undefined;
    const draw = () => {
      drawing = undefined;
      setShown({ lines: screen.lines.slice(), dropped: screen.dropped });
    };
    setShown({ lines: [], dropped: 0 });
    const follow = new OutputFollow(address, {
      chunk: (chunk) => {
        screen.take(chunk);
        drawing ??= setTimeout(draw, 50);
      },
      state: setState,
    });
    return () => {
      follow.stop();
      clearTimeout(drawing);
    };
  }, [address]);
  return { ...shown, state };
}
