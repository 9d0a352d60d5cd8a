import { describe, expect, it } from 'vitest';
import { Figures } from '../../bench/figures.ts';
import { format, formatBar, type Report, renderMarkdown, renderText } from '../../bench/report.ts';
import { renderTimeline, timeline } from '../../bench/timeline.ts';

function report(): Report {
  const figures = new Figures();
  for (const seconds of [3, 3.4, 11]) figures.add('one.usable', seconds);
  figures.add('one.delete', 1.25);
  figures.add('garden.up', Number.NaN);
  figures.add('garden.up', undefined);
  return {
    began: '2026-11-21T00:00:00.000Z',
    seconds: 60,
    runs: 3,
    machine: {
      cpu: 'Some CPU',
      cores: 2,
      memoryGiB: 8,
      isVirtual: true,
      distribution: 'Debian',
      kernel: '6.1',
      cgroups: 1,
      fileSystem: 'ext4',
      fsyncMs: 0.5,
      node: 'v24',
      kubernetes: '1.36.3',
      etcd: '3.7.3',
      containerd: '1.6.20',
      coppice: 'abc',
      loadBefore: 0.1,
    },
    busyPercent: 50,
    stolenPercent: 1,
    figures: figures.report(),
    parts: [{ title: 'Memory', unit: 'MiB', rows: [{ part: 'etcd', columns: { RSS: [40.4, 42], anonymous: [20] } }] }],
    timeline: timeline([
      { posted: 0, shoot: 0.1, ready: 9 },
      { posted: 0, shoot: 0.3, ready: 7 },
    ]),
    failures: [],
  };
}

describe('the figures of a report', () => {
  it('are those with values, in the order of the catalogue', () => {
    expect(report().figures.map(({ id, met }) => [id, met])).toEqual([
      ['one.usable', false],
      ['one.delete', true],
    ]);
  });
});

describe('format', () => {
  it.each([
    [1.234, 's', '1.23'],
    [-0.001, 's', '0.00'],
    [-1.6, 's', '-1.60'],
    [299.6, 'MiB', '300'],
    [28, 'writes', '28'],
    [28.2, 'writes', '28.2'],
    [0.0194, 'cores', '0.019'],
  ] as const)('of %s %s is %s', (value, unit, text) => {
    expect(format(value, unit)).toBe(text);
  });
  it('names both parts of a limit', () => {
    expect(formatBar({ median: 5.5, maximum: 10 })).toBe('median 5.5, max 10');
    expect(formatBar({ maximum: 0 })).toBe('max 0');
    expect(formatBar(undefined)).toBe('');
  });
});

describe('renderText', () => {
  it('aligns numbers in columns, and marks which limits are met', () => {
    const lines = renderText(report()).split('\n');
    const usable = lines.find((line) => line.includes('apply to usable'));
    expect(usable).toMatch(/ 3 +3\.00 +3\.40 +11\.00 +median 3\.5, max 10 +MISSED/);
    expect(lines.find((line) => line.includes('delete to all gone'))).toMatch(/ 1 +1\.25 +1\.25 +1\.25 +median 2 +met/);
    expect(lines.find((line) => /^ +etcd/.test(line))).toMatch(/etcd +41 +20$/);
  });
});

describe('renderMarkdown', () => {
  it('equals the snapshot', () => {
    expect(renderMarkdown(report())).toMatchSnapshot();
  });
  it('names what could not be measured', () => {
    expect(renderMarkdown({ ...report(), failures: ['idle: too busy'] })).toContain(
      '### Not measured\n\n- idle: too busy',
    );
  });
});

describe('the timeline of a report', () => {
  it('sorts milestones by their medians', () => {
    const entries = timeline([
      { ready: 5, usable: 4, posted: 0 },
      { usable: 6, posted: 0 },
    ]);
    expect(entries.map(({ milestone, median }) => [milestone, median])).toEqual([
      ['posted', 0],
      ['usable', 5],
      ['ready', 5],
    ]);
  });
  it('shows time, delay after the previous milestone, and position', () => {
    expect(renderTimeline(report().timeline, 10).split('\n')).toEqual([
      ' median   step          range  seconds after the POST',
      '   0.00  +0.00      0.00-0.00  o           WorkerCluster  posted',
      '   0.20  +0.20      0.10-0.30  o           operator       Shoot made',
      '   8.00  +7.80      7.00-9.00  ---------o  WorkerCluster  Ready',
    ]);
  });
  it('is only a head without entries', () => {
    expect(renderTimeline([]).split('\n')).toHaveLength(1);
  });
});
