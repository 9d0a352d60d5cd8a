import { describe, expect, it } from 'vitest';
import { parseInstant, readTrace } from '../../../operator/rehearsal/trace/trace.ts';
import type { TraceLine } from '../../../operator/rehearsal/trace/trace-line.ts';
import { file } from './fixtures.ts';

async function read(text: string): Promise<TraceLine[]> {
  const lines: TraceLine[] = [];
  for await (const line of readTrace(file('demand', text))) lines.push(line);
  return lines;
}
const short = ({ at, cluster, event, dataPlaneNodes, pools }: TraceLine) => [at, cluster, event, dataPlaneNodes, pools];

describe('a demand trace', () => {
  it('is CSV, with its columns in any order, comments and quotes', async () => {
    const lines = await read(
      '\uFEFFcluster,time,dataPlaneNodes,event,pool,minimum\r\n# before the sale\r\nshop,0,3\r\n\r\n"shop",90s,,,spot,2\r\nshop,1h30m,,delete',
    );
    expect(lines.map(short)).toEqual([
      [0, 'shop', 'demand', 3, []],
      [90_000, 'shop', 'demand', undefined, [{ name: 'spot', minimum: 2 }]],
      [5_400_000, 'shop', 'delete', undefined, []],
    ]);
    expect(lines[1]!.where).toMatch(/demand:5$/);
  });

  it('is one JSON object per line', async () => {
    const lines = await read(
      '{"time": "2026-11-10T20:00:00+01:00", "cluster": "a/b", "pools": [{"name": "x", "maximum": 4}]}\n{"time": "2026-11-10T20:00:00Z", "cluster": "b", "event": "create", "dataPlaneNodes": 0}\n',
    );
    expect(lines.map((line) => [line.dated, ...short(line)])).toEqual([
      [true, Date.parse('2026-11-10T19:00:00Z'), 'a/b', 'demand', undefined, [{ name: 'x', maximum: 4 }]],
      [true, Date.parse('2026-11-10T20:00:00Z'), 'b', 'create', 0, []],
    ]);
  });

  const header = 'time,cluster,event,dataPlaneNodes,pool,minimum,maximum\n';
  it.each([
    ['', 'demand: the trace has no line'],
    [header, 'demand: the trace has no line'],
    ['time,cluster,nodes\n', 'demand:1: there is no column "nodes"'],
    ['time,cluster,time\n', 'demand:1: two columns are called time'],
    ['time,dataPlaneNodes\n', 'demand:1: the header has no column cluster'],
    [`${header}0,a,,three`, 'demand:2: dataPlaneNodes: expected'],
    [`${header}0,a,,-1`, 'demand:2: dataPlaneNodes: Too small'],
    [`${header}0,a,,1.5`, 'demand:2: dataPlaneNodes: expected int'],
    [`${header}0,a,,999999`, 'demand:2: dataPlaneNodes: Too big'],
    [`${header}0,a,,1e3`, 'demand:2: dataPlaneNodes: expected'],
    [`${header}0,a`, 'demand:2: the line asks for nothing'],
    [`${header}0,,,3`, 'demand:2: cluster: expected'],
    [`${header}0,a,grow,3`, 'demand:2: event: Invalid option'],
    [`${header}0,a,delete,3`, 'demand:2: a line that deletes a cluster asks for no nodes'],
    [`${header}0,a,,,,3`, 'demand:2: minimum and maximum are of a pool'],
    [`${header}0,a,,1,,,,,,9`, 'demand:2: 10 cells under 7 columns'],
    [`${header}0,"a,,1`, 'demand:2: a quotation mark is not closed'],
    [`${header}noon,a,,1`, 'demand:2: "noon" is no time'],
    [`${header}2026-11-10,a,,1`, 'demand:2: "2026-11-10" is no time'],
    [`${header}2026-13-45T00:00:00Z,a,,1`, 'is no time'],
    [`${header}99999999999999999,a,,1`, 'is no time'],
    [`${header}9s,a,,1\n# a remark\n\n8s,a,,1`, /demand:5: time goes backwards: it is before that of .*demand:2/],
    [`${header}9s,a,,1\n2026-11-10T20:00:00Z,a,,1`, 'demand:3: dates and durations in one trace'],
    ['{"time": 0, "cluster": "a", "nodes": 3}', 'demand:1: Unrecognized key: "nodes"'],
    ['{"time": 0, "cluster": "a", "dataPlaneNodes": "3"}', 'demand:1: dataPlaneNodes: expected number'],
    [
      'time,workload,replicas,kind\n0,a,1,Job',
      'demand:2: kind: is no API version and kind such as "batch.volcano.sh/v1',
    ],
    ['time,workload,replicas,kindFrom\n0,a,1,hub', 'demand:2: workload a: kindLabels and kindFrom are about a kind'],
    ['time,workload,replicas,kind,kindFrom\n0,a,1,a.b/v1 C,us', 'demand:2: kindFrom: Invalid option'],
    ['{"time": 0', 'demand:1: the line is no JSON object'],
    [`${header}0,${'a'.repeat(70_000)},,1`, 'demand:2: the line has more than 65536 characters'],
    [`${header}0,${'a'.repeat(700_000)}`, 'demand:2: the line has more than 65536 characters'],
  ])('%#: a mistake is told with file and line', async (text, message) => {
    await expect(read(text)).rejects.toThrow(message);
    await expect(read(text)).rejects.toMatchObject({ code: 'ERR_CONFIGURATION_PROBLEM' });
  });

  it.each([
    ['90', 90_000],
    ['1.5', 1500],
    ['1h30m', 5_400_000],
    ['-5', undefined],
    ['5 minutes', undefined],
  ])('"%s" is the time %s', (text, at) => {
    expect(parseInstant(text)?.at).toBe(at);
  });
});
