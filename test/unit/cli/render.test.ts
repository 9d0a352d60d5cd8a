import { describe, expect, it } from 'vitest';
import { ageOf, formatAge, formatElapsed, formatRemaining } from '../../../operator/cli/render/age.ts';
import { progressLine } from '../../../operator/cli/render/progress.ts';
import { renderTable } from '../../../operator/cli/render/table.ts';
import { coloured, displayWidth, textCell, truncate, wrap } from '../../../operator/cli/render/text.ts';
import { renderTree } from '../../../operator/cli/render/tree.ts';

describe('text', () => {
  it.each([
    ['demo', 4],
    ['\u001b[31mdemo\u001b[0m', 4],
    ['日本', 4],
    ['e\u0301', 1],
    ['├─x', 3],
  ])('measures %j as %i columns', (text, width) => {
    expect(displayWidth(text)).toBe(width);
  });

  it('is cut to the width, also with wide characters', () => {
    expect(truncate('kube-apiserver', 8)).toBe('kube-ap…');
    expect(truncate('日本語', 4)).toBe('日…');
    expect(truncate('ok', 2)).toBe('ok');
  });

  it('loses control characters of a server', () => {
    expect(textCell('a\u001b[2Jb\nc')).toBe('a [2Jb c');
  });

  it('wraps at spaces and keeps long words whole', () => {
    expect(wrap('one two averyveryverylongword three', 9)).toEqual(['one two', 'averyveryverylongword', 'three']);
  });
});

describe('age', () => {
  it.each([
    [-5, '0s'],
    [0, '0s'],
    [119, '119s'],
    [125, '2m5s'],
    [600, '10m'],
    [3 * 3600, '3h'],
    [3 * 3600 + 60, '3h1m'],
    [10 * 3600, '10h'],
    [50 * 3600, '2d2h'],
    [20 * 86_400, '20d'],
    [800 * 86_400, '2y70d'],
  ])('%i seconds are %s', (seconds, expected) => {
    expect(formatAge(seconds * 1000)).toBe(expected);
  });

  it('is <unknown> without a valid time', () => {
    expect(ageOf(undefined, 0)).toBe('<unknown>');
    expect(ageOf('nonsense', 0)).toBe('<unknown>');
  });

  it('has the forms of a stopwatch and of time left', () => {
    expect([formatElapsed(7_000), formatElapsed(750_000), formatElapsed(3_723_000)]).toEqual([
      '0:07',
      '12:30',
      '1:02:03',
    ]);
    expect([formatRemaining(0), formatRemaining(40), formatRemaining(200), formatRemaining(4200)]).toEqual([
      '1 s',
      '40 s',
      '3 min',
      '1 h 10 min',
    ]);
  });
});

const HEADER = ['NAME', 'STATUS', 'MESSAGE'];
const ROWS = [
  ['demo', { text: 'Ready', tone: 'good' as const }, ''],
  ['a-much-longer-name', { text: 'Creating 62%', tone: 'busy' as const }, 'waiting for kube-apiserver to answer'],
];

describe('table', () => {
  it('has aligned columns and no trailing spaces', () => {
    expect(renderTable(HEADER, ROWS)).toEqual([
      'NAME                 STATUS         MESSAGE',
      'demo                 Ready',
      'a-much-longer-name   Creating 62%   waiting for kube-apiserver to answer',
    ]);
  });

  it('narrows gaps, then puts a message below its row, and never cuts a name', () => {
    const lines = renderTable(HEADER, ROWS, { width: 50 });
    expect(lines.slice(0, 3).map((line) => line.trimEnd())).toEqual([
      'NAME                 STATUS',
      'demo                 Ready',
      'a-much-longer-name   Creating 62%',
    ]);
    expect(lines.slice(3).join(' ')).toContain('waiting for kube');
    expect(lines.join('')).not.toContain('…');
    for (const width of [20, 30, 40]) expect(renderTable(HEADER, ROWS, { width })[2]).toContain('a-much-longer-name');
  });

  it('drops columns on a narrow terminal that describe shows, but no state', () => {
    const header = [
      'NAME',
      'PROVIDER',
      'MODE',
      'VERSION',
      'CONTROL-PLANE',
      'NODES',
      'READY',
      'STATUS',
      'AGE',
      'MESSAGE',
    ];
    const row = [
      'demo-worker-cluster',
      'aws (SIMULATED)',
      'Hosted',
      '1.36.3',
      '3/3',
      '25/400',
      'True',
      'Change refused',
      '12m',
      '',
    ];
    const lines = renderTable(header, [row], { width: 80 });
    expect(Math.max(...lines.map(displayWidth))).toBeLessThanOrEqual(80);
    expect(lines[1]).toMatch(/demo-worker-cluster.*aws \(SIMULATED\).*25\/400.*True.*Change refused/);
    expect(lines[0]).not.toContain('AGE');
    expect(renderTable(header, [row])[0]).toContain('AGE');
  });

  it('aligns coloured cells like plain ones', () => {
    const lines = renderTable(HEADER, ROWS, { paint: coloured });
    expect(lines[2]).toContain('\u001b[33mCreating 62%\u001b[0m   waiting');
    expect(lines.map(displayWidth)).toEqual(renderTable(HEADER, ROWS).map(displayWidth));
  });

  it('works without a header', () => {
    expect(renderTable(HEADER, [['demo', 'Ready', '']], { header: false })).toEqual(['demo   Ready']);
  });
});

describe('tree', () => {
  const tree = {
    cells: ['WorkerCluster/demo', 'True'],
    children: [
      {
        cells: ['Shoot/demo', 'False', 'three members of etcd are asked for and one has come'],
        children: [{ cells: ['ControlPlane'] }],
      },
      { cells: ['Workers', 'True', 'fine'] },
    ],
  };

  it('draws branches', () => {
    expect(renderTree(['NAME', 'READY', 'MESSAGE'], tree)).toEqual([
      'NAME                 READY   MESSAGE',
      'WorkerCluster/demo   True',
      '├─Shoot/demo         False   three members of etcd are asked for and one has come',
      '│ └─ControlPlane',
      '└─Workers            True    fine',
    ]);
  });

  it('wraps the message beside its branch', () => {
    expect(renderTree(['NAME', 'READY', 'MESSAGE'], tree, { width: 70 })).toEqual([
      'NAME                READY  MESSAGE',
      'WorkerCluster/demo  True',
      '├─Shoot/demo        False  three members of etcd are asked for and one',
      '│ │                        has come',
      '│ └─ControlPlane',
      '└─Workers           True   fine',
    ]);
  });

  it('puts the message below its row when there is no room beside it, and cuts nothing', () => {
    expect(renderTree(['NAME', 'READY', 'MESSAGE'], tree, { width: 54 })).toEqual([
      'NAME                 READY',
      'WorkerCluster/demo   True',
      '├─Shoot/demo         False',
      '│ │    three members of etcd are asked for and one has',
      '│ │    come',
      '│ └─ControlPlane',
      '└─Workers            True',
      '    fine',
    ]);
  });
});

describe('progress line', () => {
  const base = {
    label: 'kube-apiserver',
    message: 'compiling k8s.io/kubernetes/cmd/kube-apiserver',
    elapsedMs: 62_000,
  };

  it('shows bar, message and time left', () => {
    expect(progressLine({ ...base, fraction: 0.5, remainingSeconds: 61 }, 200)).toBe(
      '⠦ kube-apiserver ━━━━━━━━────────  50 % compiling k8s.io/kubernetes/cmd/kube-apiserver (1:02, about 61 s left)',
    );
  });

  it('shows the result', () => {
    expect(progressLine({ ...base, fraction: 1, state: 'done' }, 80)).toBe(
      '✔ kube-apiserver compiling k8s.io/kubernetes/cmd/kube-apiserver (1:02)',
    );
    expect(progressLine({ ...base, state: 'failed', message: 'no compiler' }, 80)).toBe(
      '✘ kube-apiserver no compiler (1:02)',
    );
  });

  it.each([200, 100, 80, 60, 40, 20, 10])('fits in %i columns', (width) => {
    for (const fraction of [undefined, 0, 0.333, 1]) {
      const line = progressLine(
        { ...base, remainingSeconds: 5, ...(fraction === undefined ? {} : { fraction }) },
        width,
        coloured,
      );
      expect(displayWidth(line)).toBeLessThanOrEqual(width);
    }
  });
});
