//! skeleton
use proc_macro::TokenStream;
/// skeleton
#[proc_macro_attribute]
pub fn command(_args: TokenStream, item: TokenStream) -> TokenStream {
    item
}
