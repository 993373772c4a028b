#![allow(unused)]

use asynccmd::command;

#[command(type = "a")]
mod orders {}

fn main() {}
