/** The run's steps as bars over time: attempts, retries and waits, live. */

import { useMemo } from 'react';
import type { Run, Step } from '../../api/client';
import { State } from '../../parts/state';
import { Text, useNow } from '../../parts/text';
import type { RunEvent } from '../../text/events';
import { span } from '../../text/span';
import { segments, SEGMENT_WORDS, type Segment } from '../../text/timeline';
import { visible } from '../../text/visible';
import { PHASE_WORDS } from './phases';
import type { Phase } from './query';

interface Props {
  run: Run;
  steps: Step[];
  events: RunEvent[];
  selected: number | undefined;
  choose: (position: string) => void;
  /** The phase that begins with a step. */
  phases: ReadonlyMap<string, Phase>;
}

export function Timeline({ run, steps, events, selected, choose, phases }: Props) {
  const now = useNow();
  const bars = useMemo(() => segments(events), [events]);
  const begin = run.created_at;
  const end = run.finished_at ?? Math.max(now, events.at(-1)?.at ?? begin);
  const length = Math.max(1, end - begin);
  return (
    <ol className="timeline">
      {steps.map((step) => (
        <li key={step.position}>
          {phases.has(step.key) && <p className="phase">{PHASE_WORDS[phases.get(step.key)!]}</p>}
          <button
            type="button"
            className="step-row"
            aria-pressed={step.position === selected}
            onClick={() => choose(String(step.position))}
          >
            <span className="step-name">
              <span className="step-key">
                <Text of={step.key} />
              </span>
              <State of={step.state} />
            </span>
            <span className="bar">
              {(bars.get(step.position) ?? []).map((segment, index) => (
                <Bar key={index} segment={segment} begin={begin} length={length} end={end} />
              ))}
            </span>
            <span className="step-took">{took(bars.get(step.position), end)}</span>
          </button>
        </li>
      ))}
      <li className="scale" aria-hidden="true">
        <span>
          <span>0</span>
          <span>{span(length)}</span>
        </span>
      </li>
    </ol>
  );
}

function took(list: Segment[] | undefined, end: number): string {
  const first = list?.[0];
  if (first === undefined) return '';
  return span((list!.at(-1)!.to ?? end) - first.from);
}

function Bar({ segment, begin, length, end }: { segment: Segment; begin: number; length: number; end: number }) {
  const to = segment.to ?? end;
  const left = Math.min(99.4, ((segment.from - begin) / length) * 100);
  const width = Math.min(100 - left, Math.max(0.6, ((to - segment.from) / length) * 100));
  const words = `${SEGMENT_WORDS[segment.kind]} for ${span(to - segment.from)}`;
  const title = segment.note === undefined ? words : `${words}: ${visible(segment.note)}`;
  return (
    <span
      className={`segment ${segment.kind} ${segment.to === undefined ? 'open' : ''}`}
      style={{ left: `${left}%`, width: `${width}%` }}
      title={title}
    />
  );
}
