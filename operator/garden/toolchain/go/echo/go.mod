module coppice/toolchain/echo

go 1.22
