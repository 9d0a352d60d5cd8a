import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { filesIn, importsOf, MAY_IMPORT, roomOf, textOf, WIRING } from '../../kit/rooms/files.ts';

/** What each controller may import of others, besides the files that all share: they meet in the API server, and circles begin here. */
const CONTROLLER_MAY_IMPORT: Record<string, string[]> = {
  attached: [],
  // Which nodes a cloud is ending is known there.
  autoscaling: ['managed', 'quota'],
  backup: ['shoot'],
  // Nodes that it adds are decided by the rules of the autoscaler, which takes them away again.
  burst: ['autoscaling', 'membership', 'quota'],
  cloudprofile: [],
  credentials: [],
  // Whose a namespace in a seed is, before its keys sign for somebody.
  kubeconfigs: ['shoot'],
  managed: ['credentials'],
  membership: [],
  quota: [],
  seed: ['backup'],
  shoot: [],
  workercluster: ['attached', 'autoscaling', 'backup', 'managed', 'quota', 'shoot'],
};
/** What each room of the garden may import of the others, the upper ones first. The command line knows `garden.ts`, which may import all. */
const GARDEN_MAY_IMPORT: Record<string, string[]> = {
  daemon: ['control-plane', 'egress', 'host', 'processes', 'seed', 'state', 'toolchain'],
  seed: ['control-plane', 'egress', 'host', 'images', 'network-policies', 'processes', 'state', 'toolchain'],
  'control-plane': ['host', 'processes', 'state'],
  egress: ['host', 'processes', 'state', 'toolchain'],
  images: ['host', 'state', 'toolchain'],
  'network-policies': ['host'],
  processes: ['host', 'state'],
  state: ['host', 'toolchain'],
  toolchain: ['host'],
  host: [],
};
const files = ['operator', 'providers'].flatMap(filesIn);

/** The folder of controllers that a file is in; undefined: it is in none, or all controllers share it. */
const controllerOf = (file: string): string | undefined => /^operator\/controllers\/([^/]+)\//.exec(file)?.[1];

/** The room of the garden that a file is in; undefined: it is in none. */
const gardenRoomOf = (file: string): string | undefined => /^operator\/garden\/([^/]+)\//.exec(file)?.[1];

/** The text of a file with each import on one line. */
const imported = (file: string): string =>
  textOf(file).replace(/\{[^{}]*\}(?= from ')/g, (names) => names.replace(/\s+/g, ' '));

/** The first circle that imports of these files make, types among them: [a, b, ..., a]. Empty: there is none. */
function circleOf(all: readonly string[]): string[] {
  const way: string[] = [];
  const done = new Set<string>();
  const follow = (file: string): string[] => {
    if (way.includes(file)) return [...way.slice(way.indexOf(file)), file];
    if (done.has(file)) return [];
    done.add(file);
    way.push(file);
    for (const target of importsOf(file)) {
      const circle = follow(target);
      if (circle.length > 0) return circle;
    }
    way.pop();
    return [];
  };
  for (const file of all) {
    const circle = follow(file);
    if (circle.length > 0) return circle;
  }
  return [];
}

/** What docs/architecture.md draws: files and folders by the name of their box, and arrows between boxes. */
function pictureOfHouse(): { boxes: Map<string, string[]>; arrows: [from: string, to: string][] } {
  const page = textOf('docs/architecture.md');
  const picture = /```mermaid\n(.*?)```/s.exec(page)![1]!;
  const boxes = new Map<string, string[]>();
  for (const [, box, named] of picture.matchAll(/(\w+)\["([^<"]+)/g)) {
    const [first, ...others] = named!.split(', ');
    boxes.set(box!, [first!, ...others.map((other) => join(dirname(first!), other))]);
  }
  const lines = picture.matchAll(/^ *(\w+)(?:\["[^"]*"\])? (?:-->|-\. .* \.->) (\w+)/gm);
  return { boxes, arrows: [...lines].map(([, from, to]) => [from!, to!]) };
}

describe('the dependencies of the product', () => {
  it('assign each file to a room', () => {
    expect(files.filter((file) => !roomOf(file) && !WIRING.includes(file))).toEqual([]);
  });

  it('point one way', () => {
    const wrong = files
      .filter((file) => !WIRING.includes(file))
      .flatMap((file) => {
        const room = roomOf(file)!;
        return importsOf(file)
          .filter((target) => roomOf(target) !== room && !MAY_IMPORT[room]!.includes(roomOf(target) ?? target))
          .map((target) => `${file} imports ${target}`);
      });
    expect(wrong).toEqual([]);
  });

  it('match the drawing in docs/architecture.md, directly or through other rooms', () => {
    const { boxes, arrows } = pictureOfHouse();
    const boxOf = (file: string) =>
      [...boxes.keys()].find((box) => boxes.get(box)!.some((path) => file === path || file.startsWith(`${path}/`)));
    const found = new Set(
      files.flatMap((file) => importsOf(file).map((target) => `${boxOf(file)} --> ${boxOf(target)}`)),
    );
    expect(arrows.map(([from, to]) => `${from} --> ${to}`).filter((arrow) => !found.has(arrow))).toEqual([]);
    const leadsTo = (from: string): string[] =>
      arrows.flatMap(([one, to]) => (one === from ? [to, ...leadsTo(to)] : []));
    const undrawn = [...found].filter((arrow) => {
      const [from, to] = arrow.split(' --> ') as [string, string];
      return from !== to && boxes.has(from) && boxes.has(to) && !leadsTo(from).includes(to);
    });
    expect(undrawn).toEqual([]);
  });

  it('contain no cycle of files, so that each can be read after its imports', () => {
    expect(circleOf(files)).toEqual([]);
  });

  it('contain no cycles among the controllers', () => {
    const wrong = files.flatMap((file) => {
      const own = controllerOf(file);
      if (own === undefined) return [];
      return importsOf(file)
        .filter((target) => {
          const other = controllerOf(target);
          return other !== undefined && other !== own && !CONTROLLER_MAY_IMPORT[own]?.includes(other);
        })
        .map((target) => `${file} imports ${target}`);
    });
    expect(wrong).toEqual([]);
    expect(files.map(controllerOf).filter((name) => name && !CONTROLLER_MAY_IMPORT[name])).toEqual([]);
  });

  it('of the garden lead from each of its rooms to lower ones only', () => {
    const rooms = Object.keys(GARDEN_MAY_IMPORT);
    const inGarden = files.filter((file) => file.startsWith('operator/garden/'));
    expect(inGarden.filter((file) => !gardenRoomOf(file))).toEqual(['operator/garden/garden.ts']);
    expect([...new Set(inGarden.flatMap((file) => gardenRoomOf(file) ?? []))].sort()).toEqual(rooms.toSorted());
    const wrong = inGarden.flatMap((file) => {
      const room = gardenRoomOf(file);
      if (room === undefined) return [];
      return importsOf(file)
        .filter((target) => target.startsWith('operator/garden/') && gardenRoomOf(target) !== room)
        .filter((target) => !GARDEN_MAY_IMPORT[room]?.includes(gardenRoomOf(target) ?? target))
        .map((target) => `${file} imports ${target}`);
    });
    expect(wrong).toEqual([]);
    const upward = rooms.filter((room, at) => GARDEN_MAY_IMPORT[room]!.some((other) => rooms.indexOf(other) <= at));
    expect(upward).toEqual([]);
  });

  it('of operator.ts on controllers end at their wiring files', () => {
    const wirings = Object.keys(CONTROLLER_MAY_IMPORT).map((name) => `operator/controllers/${name}/wiring.ts`);
    expect(importsOf('operator/operator.ts').filter((target) => target.startsWith('operator/controllers/'))).toEqual(
      ['operator/controllers/core.ts', ...wirings].sort(),
    );
    // What a controller needs of others its wiring takes from theirs: the shared part knows none of them.
    const known = importsOf('operator/controllers/core.ts').filter((target) => controllerOf(target) !== undefined);
    expect(known).toEqual([]);
  });

  it("of controllers on providers end at the providers' contract", () => {
    const named = files
      .filter((file) => /^operator\/(accounts|clusters|controllers)\//.test(file))
      .flatMap((file) =>
        importsOf(file).filter(
          (target) =>
            target.startsWith('providers/') &&
            !['providers/contract.ts', 'providers/cloud.ts', 'providers/dns.ts'].includes(target),
        ),
      );
    expect(named).toEqual([]);
  });

  it("on the place of control plane machines are only where a shoot's strategy is chosen", () => {
    const shoot = 'operator/controllers/shoot';
    // The second says whether there is either.
    const mayAsk = [`${shoot}/strategy.ts`, `${shoot}/self-hosted/self-hosted.ts`];
    const asking = files.filter(
      (file) => file.startsWith('operator/') && /\bcontrolPlane(Group|Machines)\b/.test(textOf(file)),
    );
    expect(asking.sort()).toEqual(mayAsk.sort());
  });

  it('on modules of tens of MiB are loaded on use, not with the operator', () => {
    const isWorkers = (file: string) =>
      /^providers\/\w+\/programs(\/|\.ts)/.test(file) || /^providers\/pulumi\/(worker|program)\b/.test(file);
    const loaded = files
      .filter((file) => !isWorkers(file))
      .flatMap((file) =>
        [...textOf(file).matchAll(/^import (?!type ).*'(@kubernetes\/client-node|@pulumi\/.*)'/gm)].map(
          ([line]) => `${file}: ${line}`,
        ),
      );
    expect(loaded).toEqual([]);
  });

  it("on a pool's desired size go through operator/capacity/desired-sizes.ts", () => {
    const readers = files.filter((file) => /\bpoolsOf\b.*from '.*\/api\/pools\.ts'/.test(imported(file)));
    expect(readers).toEqual(['operator/capacity/desired-sizes.ts']);
  });

  it('do not include a utils.ts', () => {
    expect(files.filter((file) => /(^|\/)(utils?|helpers?|misc|common)\.ts$/.test(file))).toEqual([]);
  });
});
