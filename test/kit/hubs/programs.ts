/** Folder with programs of real hubs, built beside the repository. Absent: tests of real hubs are skipped. */
export const { COPPICE_HUB_PROGRAMS: programs } = process.env;
if (!programs) console.log('hubs: skipped, as COPPICE_HUB_PROGRAMS names no folder with programs of real hubs');
