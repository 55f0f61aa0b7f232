/** Charts over the runs that the filter matches: what ended, what failed, and what was under way. */

import { useState } from 'react';
import { useQuery } from '@tanstack/react-query';
import { Bars, type Bar } from '../../parts/bars';
import { Button } from '../../parts/button';
import { buckets, type Bucket } from '../../text/buckets';
import { shortTime, span } from '../../text/span';
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

export function Charts({ filter, now }: { filter: RunFilter; now: number }) {
  const history = useQuery(historyQuery(filter));
  // The list says itself what is wrong; the height stays, so that nothing jumps.
  if (history.data === undefined) return <div className="charts" aria-hidden="true" />;
  return <Three history={history.data} to={Math.max(now, history.data.at)} />;
}

function Three({ history, to }: { history: History; to: number }) {
  const list = buckets(history.runs, history.from, to);
  const sum = (count: (bucket: Bucket) => number) => list.reduce((total, bucket) => total + count(bucket), 0);
  const failed = sum((bucket) => bucket.failed);
  const over = failed + sum((bucket) => bucket.succeeded + bucket.canceled);
  const open = list.at(-1)?.open ?? 0;
  const most = Math.max(0, ...list.map((bucket) => bucket.open));
  const each = span((list[0]?.to ?? 0) - (list[0]?.from ?? 0));
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
        number={open}
        beside={`${most.toLocaleString()} at most`}
        list={list}
        bar={({ open }) => ({ words: `${open} not ended`, parts: [{ tone: 'busy', value: open }] })}
      />
      <p className="charts-foot quiet">
        {history.whole ? 'Runs that started' : `The newest ${history.runs.length.toLocaleString()} runs, which started`} since {shortTime(history.from, to)}, a bar for {each}.
        {history.counted !== undefined &&
          ` Since ${shortTime(history.counted.since, to)} ${history.counted.started.toLocaleString()} have started, and ${history.counted.failed.toLocaleString()} of them failed.`}
      </p>
    </section>
  );
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
    return { title: `${shortTime(bucket.from, last.to)} – ${shortTime(bucket.to, last.to)}: ${words}`, parts };
  });
  return (
    <div className="chart">
      <p>
        <span className="quiet">{title}</span> <strong className="number">{number.toLocaleString()}</strong> <span className="quiet">· {beside}</span>
      </p>
      <Bars bars={bars} label={`${title}: ${number.toLocaleString()}, ${beside}.`} />
      <p className="chart-ends quiet" aria-hidden="true">
        <span>{shortTime(list[0]!.from, last.to)}</span>
        <span>now</span>
      </p>
    </div>
  );
}

function percent(share: number): string {
  if (share > 0 && share < 0.01) return 'less than 1 %';
  return `${Math.round(share * 100)} %`;
}
