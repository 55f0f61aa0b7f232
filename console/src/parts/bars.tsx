/** Numbers over time as bars. The picture is for eyes; its label says the same in a sentence. */

import type { Tone } from './state';

export interface Bar {
  /** What stands on hover. */
  title: string;
  /** From the bottom up. */
  parts: { tone: Tone; value: number }[];
}

const HEIGHT = 100;
/** Of a bar's place, so that two of them do not touch. */
const WIDTH = 0.8;
/** What is not nothing is seen. */
const SEEN = 3;

export function Bars({ bars, label }: { bars: Bar[]; label: string }) {
  const most = Math.max(1, ...bars.map(({ parts }) => parts.reduce((sum, part) => sum + part.value, 0)));
  return (
    <svg className="bars" viewBox={`0 0 ${bars.length} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={label}>
      {bars.map(({ title, parts }, index) => {
        let top = HEIGHT;
        return (
          <g key={index}>
            <title>{title}</title>
            <rect className="bar-place" x={index} y={0} width={1} height={HEIGHT} />
            {parts.map(({ tone, value }) => {
              if (value === 0) return null;
              const height = Math.max(SEEN, (value / most) * (HEIGHT - SEEN));
              top -= height;
              return <rect key={tone} className={`bar-part ${tone}`} x={index + (1 - WIDTH) / 2} y={Math.max(0, top)} width={WIDTH} height={height} />;
            })}
          </g>
        );
      })}
    </svg>
  );
}
