// Draws panels of horizontal bars as an SVG that stands on a ground of its own, light or
// dark as the reader's system prefers, so that it can be read on any page.

const WIDTH = 820;
const NAME_WIDTH = 210;
const VALUE_WIDTH = 110;
const BAR_HEIGHT = 20;
const BAR_GAP = 9;
const TITLE_HEIGHT = 50;
const PADDING = 24;

// Beyond this the shortest bar on a linear scale could not be seen beside the longest.
const LINEAR_RATIO_MAX = 50;

const STYLE = `
    .ground { fill: #ffffff; stroke: #d0d7de; }
    text { font: 13px system-ui, sans-serif; fill: #1f2328; }
    .title { font-weight: 600; font-size: 15px; }
    .note { fill: #59636e; font-size: 12px; }
    .grid { stroke: #d8dee4; }
    .ours { fill: #0a7d5a; }
    .peer { fill: #8c959f; }
    @media (prefers-color-scheme: dark) {
      .ground { fill: #161b22; stroke: #3d444d; }
      text { fill: #e6edf3; }
      .note { fill: #9198a1; }
      .grid { stroke: #30363d; }
      .ours { fill: #2fbf8f; }
      .peer { fill: #6e7681; }
    }`;

/** `panels`: `[{ title, note, bars: [{ name, value, label, ours }] }]`. Answers the SVG's text. */
export function chart(title, panels) {
  let top = PADDING;
  const drawn = panels.map((panel) => {
    const part = drawPanel(panel, top);
    top += panelHeight(panel);
    return part;
  });
  const height = top + PADDING / 2;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title description">
  <title id="title">${escaped(title)}</title>
  <desc id="description">${escaped(description(panels))}</desc>
  <style>${STYLE}
  </style>
  <rect class="ground" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="8"/>
${drawn.join("\n")}
</svg>
`;
}

function panelHeight({ bars }) {
  return TITLE_HEIGHT + bars.length * (BAR_HEIGHT + BAR_GAP) + PADDING;
}

function drawPanel({ title, note, bars }, top) {
  const scale = scaleOf(bars.map((bar) => bar.value));
  const left = PADDING + NAME_WIDTH;
  const first = top + TITLE_HEIGHT;
  const bottom = first + bars.length * (BAR_HEIGHT + BAR_GAP) - BAR_GAP;
  const lines = [
    `  <text class="title" x="${PADDING}" y="${top + 14}">${escaped(title)}</text>`,
    `  <text class="note" x="${PADDING}" y="${top + 33}">${escaped(`${note}${scale.note}`)}</text>`,
    ...scale.ticks.map((tick) => {
      const x = left + scale.length(tick);
      return `  <line class="grid" x1="${x}" y1="${first - 4}" x2="${x}" y2="${bottom + 4}"/>`;
    }),
  ];
  bars.forEach(({ name, value, label, ours }, index) => {
    const y = first + index * (BAR_HEIGHT + BAR_GAP);
    const length = scale.length(value);
    lines.push(
      `  <text x="${left - 10}" y="${y + 15}" text-anchor="end">${escaped(name)}</text>`,
      `  <rect class="${ours ? "ours" : "peer"}" x="${left}" y="${y}" width="${length}" height="${BAR_HEIGHT}" rx="3"/>`,
      `  <text x="${left + length + 8}" y="${y + 15}">${escaped(label)}</text>`,
    );
  });
  return lines.join("\n");
}

function scaleOf(values) {
  const width = WIDTH - 2 * PADDING - NAME_WIDTH - VALUE_WIDTH;
  const least = Math.min(...values);
  const most = Math.max(...values);
  if (most / least <= LINEAR_RATIO_MAX) {
    return { note: "", ticks: [0], length: (value) => rounded((value / most) * width) };
  }
  const low = Math.floor(Math.log10(least / 2));
  const high = Math.log10(most);
  const length = (value) => rounded(((Math.log10(value) - low) / (high - low)) * width);
  const ticks = Array.from({ length: Math.floor(high) - low + 1 }, (_, decade) => 10 ** (low + decade));
  return { note: "; logarithmic, each line ten times the one before", ticks, length };
}

function rounded(value) {
  return Number(value.toFixed(1));
}

function description(panels) {
  return panels
    .map(({ title, bars }) => `${title}: ${bars.map(({ name, label }) => `${name} ${label}`).join(", ")}.`)
    .join(" ");
}

function escaped(text) {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
