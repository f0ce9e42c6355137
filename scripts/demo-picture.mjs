/**
 * Draws the demonstration's output as an animated picture for the README: docs/pictures/demo.svg.
 * Run it by `npm run demo:picture`.
 */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { projectRoot } from './bundle.mjs';

const COMMAND = 'npm run demo';
const LINE_PX = 18;
const CHAR_PX = 7.85;
const MARGIN_PX = 16;
/** Time in seconds between two lines. */
const LINE_SECONDS = 0.35;
const REST_SECONDS = 8;

/** Styles of the terminal that the demonstration uses. */
const CLASSES = { 1: 'b', 32: 'g', 36: 'c' };
const STYLE = new RegExp(`${String.fromCharCode(0x1b)}\\[(\\d+)m`);

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;');

/** Returns a line with styles as the content of a text element. */
function spansOf(line) {
  let style;
  return line
    .split(STYLE)
    .map((piece, at) => {
      if (at % 2 === 1) {
        style = CLASSES[piece];
        return '';
      }
      return style === undefined ? escaped(piece) : `<tspan class="${style}">${escaped(piece)}</tspan>`;
    })
    .join('');
}

const plain = (line) =>
  line
    .split(STYLE)
    .filter((_piece, at) => at % 2 === 0)
    .join('');

/** Returns the picture of some lines, which appear one after another. */
function pictureOf(lines) {
  const width = Math.ceil(Math.max(...lines.map((line) => plain(line).length)) * CHAR_PX) + 2 * MARGIN_PX;
  const height = lines.length * LINE_PX + 2 * MARGIN_PX;
  const all = lines.length * LINE_SECONDS + REST_SECONDS;
  const share = (seconds) => ((100 * seconds) / all).toFixed(2);
  const rows = lines.map((line, at) => {
    const y = MARGIN_PX + (at + 0.75) * LINE_PX;
    return `<text x="${MARGIN_PX}" y="${y}" class="l" style="animation-name:l${at}">${spansOf(line)}</text>`;
  });
  // A line is hidden until its time. Without animation, all lines are visible.
  const frames = lines.map((_line, at) => {
    const from = share(at * LINE_SECONDS);
    return `@keyframes l${at}{0%,${from}%{opacity:0}${(Number(from) + 0.01).toFixed(2)}%,100%{opacity:1}}`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" role="img">
<title>The output of ${COMMAND}</title>
<style>
text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#d6deeb;white-space:pre}
.b{font-weight:700;fill:#fff}.g{fill:#7fd88f}.c{fill:#6cc7e0}
.l{animation:${all.toFixed(2)}s infinite step-end}
@media (prefers-reduced-motion:reduce){.l{animation:none}}
${frames.join('\n')}
</style>
<rect width="100%" height="100%" rx="8" fill="#161b26"/>
${rows.join('\n')}
</svg>
`;
}

const { stdout } = await promisify(execFile)(process.execPath, [join(projectRoot, 'dist', 'demo.js')], {
  cwd: projectRoot,
  env: { ...process.env, FORCE_COLOR: '1' },
});
// The address of the page contains a folder of this machine.
const shown = stdout
  .trimEnd()
  .split('\n')
  .filter((line) => !line.includes('file://'));
const file = join(projectRoot, 'docs', 'pictures', 'demo.svg');
await writeFile(file, pictureOf([`$ ${COMMAND}`, '', ...shown]));
console.log(file);
