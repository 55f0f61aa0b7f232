/** Charts over the runs that the filter matches: what ended, what failed, and what was under way. */

import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { Bars, type Bar } from '../../parts/bars';
import { Button } from '../../parts/button';
import type { Bucket } from '../../text/buckets';
import { fromTo, shortTime, span, utc } from '../../text/span';
import { historyQuery, type History } from './history';
import type { RunFilter } from './filter';

const NAME = 'interlock.charts';

/** Whether they are shown: as it was chosen in this browser, else where there is room for them. */
export function useChartsShown(): [boolean, () => void] {
  const [shown, setShown] = useState(() => {
    const kept = localStorage.getItem(NAME);
    return kept === null ? window.matchMedia('(min-width: 761px)').matches : kept === 'shown';
  });
  function turn() {
    localStorage.setItem(NAME, shown ? 'hidden' : 'shown');
    setShown(!shown);
  }
  return [shown, turn];
}

export function ChartsButton({ shown, turn }: { shown: boolean; turn: () => void }) {
  return (
    <Button look="quiet" aria-pressed={shown} press="h" onClick={turn}>
      {shown ? 'Hide charts' : 'Show charts'}
    </Button>
  );
}

export function Charts({ filter }: { filter: RunFilter }) {
  const history = useQuery(historyQuery(filter));
  // The list says itself what is wrong; the height stays, so that nothing jumps.
  if (history.data === undefined) return <div className="charts" aria-hidden="true" />;
  return <Three history={history.data} />;
}

function Three({ history }: { history: History }) {
  const { list } = history;
  const sum = (count: (bucket: Bucket) => number) => list.reduce((total, bucket) => total + count(bucket), 0);
  const failed = sum((bucket) => bucket.failed);
  const over = failed + sum((bucket) => bucket.succeeded + bucket.canceled);
  const now = list.at(-1);
  const most = Math.max(0, ...list.map((bucket) => bucket.open));
  return (
    <section className="charts" aria-label="Runs over time">
      <Chart
        title="Ended"
        number={over}
        beside={`${sum((bucket) => bucket.started).toLocaleString()} started`}
        list={list}
        bar={({ succeeded, failed, canceled }) => ({
          words: `${succeeded} succeeded, ${failed} failed, ${canceled} canceled`,
          parts: [
            { tone: 'good', value: succeeded },
            { tone: 'idle', value: canceled },
            { tone: 'bad', value: failed },
          ],
        })}
      />
      <Chart
        title="Failed"
        number={failed}
        beside={over === 0 ? 'of none' : `${percent(failed / over)} of what ended`}
        list={list}
        bar={({ failed }) => ({ words: `${failed} failed`, parts: [{ tone: 'bad', value: failed }] })}
      />
      <Chart
        title="Under way or waiting"
        number={now?.open ?? 0}
        beside={waitingWords(now?.approvals, most)}
        list={list}
        bar={({ open, approvals = 0 }) => ({
          words: approvals === 0 ? `${open} not ended` : `${open} not ended, ${approvals} approvals open`,
          parts: openParts(open, approvals),
        })}
      />
      <p className="charts-foot quiet" title={list[0] && utc(list[0].from)}>
        {footOf(history)}
      </p>
    </section>
  );
}

/** A run waits for one approval at a time, as a rule: that many of the open runs wait for a person. */
export function openParts(open: number, approvals: number): Bar['parts'] {
  const waiting = Math.min(open, approvals);
  return [
    { tone: 'asks', value: waiting },
    { tone: 'busy', value: open - waiting },
  ];
}

function waitingWords(approvals: number | undefined, most: number): string {
  return approvals === undefined || approvals === 0 ? `${most.toLocaleString()} at most` : `${approvals.toLocaleString()} for a person`;
}

function footOf({ list, at, whole, lookedThrough }: History): string {
  const first = list[0];
  if (first === undefined) return 'There are too many runs to count within one bar: choose a shorter time.';
  const bars = `since ${shortTime(first.from, at)}, a bar for ${span(first.to - first.from)}.`;
  if (lookedThrough !== undefined && !whole) return `The newest ${lookedThrough.toLocaleString()} runs with this text, which started ${bars}`;
  return whole ? `Runs ${bars}` : `Runs ${bars} Before that there are more than are counted.`;
}

interface ChartProps {
  title: string;
  number: number;
  beside: string;
  list: Bucket[];
  bar: (bucket: Bucket) => { words: string; parts: Bar['parts'] };
}

function Chart({ title, number, beside, list, bar }: ChartProps) {
  const last = list.at(-1);
  if (last === undefined) return null;
  const bars = list.map((bucket): Bar => {
    const { words, parts } = bar(bucket);
    return { title: `${words}\n${fromTo(bucket.from, bucket.to, last.to)}`, parts };
  });
  return (
    <div className="chart">
      <p>
        <span className="quiet">{title}</span> <strong className="number">{number.toLocaleString()}</strong> <span className="quiet">· {beside}</span>
      </p>
      <Bars bars={bars} label={`${title}: ${number.toLocaleString()}, ${beside}.`} />
      <p className="chart-ends quiet" aria-hidden="true">
        <span title={utc(list[0]!.from)}>{shortTime(list[0]!.from, last.to)}</span>
        <span>now</span>
      </p>
    </div>
  );
}

function percent(share: number): string {
  if (share > 0 && share < 0.01) return 'less than 1 %';
  return `${Math.round(share * 100)} %`;
}
