module coppice/toolchain/pause

go 1.21
