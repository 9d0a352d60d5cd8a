import { StateDirectory } from '../garden/state.ts';
import { coppiceHome } from '../garden/toolchain/cache.ts';

/** What `Garden.up` says while it works. */
export interface GardenProgress {
  stage: string;
  message: string;
  tool?: string;
  fraction?: number;
  remainingSeconds?: number;
}

type OnProgress = { onProgress?: (event: GardenProgress) => void };

/** The part of `Garden` that the CLI uses. */
export interface GardenHandle {
  up(options: OnProgress & { signal?: AbortSignal }): Promise<unknown>;
  status(): Promise<GardenReport>;
  stop(options?: OnProgress): Promise<unknown>;
  down(options?: OnProgress): Promise<unknown>;
}

/** How a garden is, as far as the CLI shows it; what else it says appears in -o json. */
export interface GardenReport {
  running: boolean;
  components?: { name: string; state: string; pid?: number; restarts?: number; message?: string }[];
  [field: string]: unknown;
}

interface GardenModule {
  Garden: { open(options?: { home?: string; seedKubeconfig?: string }): Promise<GardenHandle> | GardenHandle };
}

type Env = Record<string, string | undefined>;

/** The kubeconfig of the embedded garden's administrator; known without loading the garden, which takes long. */
export function gardenKubeconfigFile(env: Env): string {
  return new StateDirectory(coppiceHome(env)).kubeconfigFile('admin');
}

/** Opens the garden of this machine. */
export async function openGarden(env: Env, seedKubeconfig?: string): Promise<GardenHandle> {
  const { Garden } = (await import('../garden/garden.ts' as string)) as GardenModule;
  return Garden.open({ home: coppiceHome(env), ...(seedKubeconfig === undefined ? {} : { seedKubeconfig }) });
}

/** The process that supervises the garden. */
export async function loadDaemon(): Promise<{ runDaemon: () => Promise<void> }> {
  return (await import('../garden/daemon.ts' as string)) as { runDaemon: () => Promise<void> };
}
