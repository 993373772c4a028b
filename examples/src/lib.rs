//! The examples of asynccmd: see the folders beside this one. This library is empty; it makes cargo
//! take the folder as a package.
